from __future__ import annotations

import subprocess
import sys

import pytest

from lcursor.catalog import manifest
from lcursor.errors import ModelCorrupt, ModelUnknown

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
    from lcursor.catalog.registry import part_sizes
    from lcursor.config import CompletionConfig

    model = manifest.find(CompletionConfig().model)
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
        ('file = "one.gguf"', 'file = "../one.gguf"', "bare name"),
        ('file = "one.gguf"', 'file = "one.bin"', "bare name"),
        ('digest = "hub"', 'digest = "verified"', "does not go with sha256"),
        ('digest = "hub"', 'digest = "published"\nsha256 = "12"', "64 hexadecimal"),
        ('slots = ["chat"]', 'slots = ["completion"]', "family None"),
        ('slots = ["chat"]', 'slots = ["chat"]\nfamily = "granite"', "family 'granite'"),
        ('slots = ["chat"]', 'slots = ["paint"]', "unknown slot"),
        ('slots = ["chat"]', "", "missing or unknown field"),
        ('licence = "MIT"', 'licence = "MIT"\ncolour = "red"', "missing or unknown field"),
        ('name = "one"', 'name = "One"', "lower-case"),
        ("bytes = 1", "bytes = ", "Invalid value"),
    ],
)
def test_a_wrong_entry_is_named(old: str, new: str, complaint: str) -> None:
    with pytest.raises(ModelCorrupt, match=complaint):
        manifest.parse(ENTRY.replace(old, new))


def test_an_entry_may_not_appear_twice() -> None:
    with pytest.raises(ModelCorrupt, match="twice"):
        manifest.parse(ENTRY + ENTRY)


def test_reading_the_manifest_imports_nothing_heavy() -> None:
    code = (
        "import sys; from lcursor.catalog import manifest, resolve; manifest.load();"
        "print([m for m in ('huggingface_hub', 'rich', 'typer', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
