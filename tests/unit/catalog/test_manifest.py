from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lcursor.catalog import manifest
from lcursor.catalog.manifest import Model
from lcursor.errors import ModelCorrupt, ModelUnknown
from lcursor.fim.families import FAMILIES
from lcursor.next_edit import families

ENTRY = """
[[model]]
name = "one"
slots = ["chat"]
parameters = "1B"
file = "one.gguf"
bytes = 1
digest = "hub"
repo = "a/b"
revision = "main"
licence = "MIT"
context_tokens = 1
kv_bytes_per_token = 1
"""


def test_the_menu_is_whole() -> None:
    names = {model.name for model in manifest.load()}
    assert names >= {
        *("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "qwen2.5-coder-7b", "starcoder2-3b"),
        *("codestral-22b", "mellum-4b", "seed-coder-8b", "codegemma-2b", "granite-3.3-2b"),
        *("deepseek-coder-v2-lite", "devstral-small-24b", "qwen3-coder-30b-a3b"),
    }


def test_the_default_model_is_verified_and_its_parts_add_up() -> None:
    from lcursor.catalog.recommend import SMALL
    from lcursor.catalog.registry import part_sizes

    model = manifest.find(SMALL)
    assert model.digest == "verified"
    assert model.sha256 == "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
    assert model.registry is not None
    sizes = part_sizes(model, model.registry)
    assert sum(sizes) == model.bytes
    assert all(0 < size <= model.registry.part_bytes for size in sizes)


@pytest.mark.parametrize("name", ["qwen2.5-coder-0.5b", "QWEN2.5-Coder-0.5B"])
def test_a_name_is_found_in_any_case(name: str) -> None:
    assert manifest.find(name).parameters == "0.5B"


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ModelUnknown) as caught:
        manifest.find("qwen2.5-coder-0.5")
    assert caught.value.hint.startswith("Nearest: qwen2.5-coder-0.5b")
    with pytest.raises(ModelUnknown) as caught:
        manifest.find("zzz")
    assert caught.value.hint == "See python -m lcursor models list"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('slots = ["chat"]', "", "missing or unknown field"),
        ('licence = "MIT"', 'licence = "MIT"\ncolour = "red"', "missing or unknown field"),
        ("bytes = 1", "bytes = ", "Invalid value"),
    ],
)
def test_a_wrong_entry_is_named(old: str, new: str, complaint: str) -> None:
    with pytest.raises(ModelCorrupt, match=complaint):
        manifest.parse(ENTRY.replace(old, new))


@pytest.mark.parametrize("model", manifest.load(), ids=lambda model: model.name)
def test_each_entry_of_ours_is_right(model: Model) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9.\-]*", model.name)
    assert model.slots
    assert set(model.slots) <= {"completion", "chat", "embedding", "next_edit"}
    known = {"completion": FAMILIES, "next_edit": families.FAMILIES}
    expected = next((known[slot] for slot in model.slots if slot in known), {None})
    assert model.family in expected
    ending = ".onnx" if "embedding" in model.slots else ".gguf"
    assert model.file.endswith(ending)
    for each in model.files:
        assert Path(each.file).name == each.file
        assert each.digest in ("verified", "published", "hub")
        assert (each.sha256 is None) == (each.digest == "hub")
        assert re.fullmatch(r"[0-9a-f]{64}", each.sha256 or "0" * 64)
        assert each.repo or each.registry, "no source"
        assert each.registry is None or (each.sha256 and each.bytes_exact)


def test_reading_the_manifest_imports_nothing_heavy() -> None:
    code = (
        "import sys; from lcursor.catalog import manifest, store; manifest.load();"
        "print([m for m in ('huggingface_hub', 'rich', 'typer', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("file", "copy"),
    [
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-0.5b-instruct-q4_0.gguf"),
        ("Codestral-22B-v0.1-Q4_K_M.gguf", "Codestral-22B-v0.1-q4_0.gguf"),
        ("mellum-4b-base.Q8_0.gguf", "mellum-4b-base-q4_0.gguf"),
        ("Devstral-Small-2507-IQ4_XS.gguf", "Devstral-Small-2507-q4_0.gguf"),
        ("model-BF16.gguf", "model-q4_0.gguf"),
        ("qwen2.gguf", "qwen2-q4_0.gguf"),
    ],
)
def test_a_q4_0_copy_is_named_after_its_source(file: str, copy: str) -> None:
    assert manifest.requantized_file(file) == copy


def test_a_q4_0_copy_is_found_by_name_and_by_file() -> None:
    copy = manifest.find("Qwen2.5-coder-0.5b-q4_0")
    assert copy.made_from == "qwen2.5-coder-0.5b"
    assert (copy.digest, copy.sha256, copy.slots) == ("made", None, ("completion",))
    assert manifest.with_file(copy.file) == copy
    granite = manifest.find("granite-3.3-2b-q4_0")
    assert manifest.family_of(Path("anywhere", granite.file)) == "granite"
    assert manifest.family_of(Path("mine.gguf")) == ""
    with pytest.raises(ModelUnknown):
        manifest.find("devstral-small-24b-q4_0")  # completes nothing


def test_no_two_models_have_the_same_name_or_file() -> None:
    models = (*manifest.load(), *manifest.requantized())
    files = [each.file for model in models for each in model.files]
    assert len(files) == len(set(files))
    assert len(models) == len({model.name for model in models})
