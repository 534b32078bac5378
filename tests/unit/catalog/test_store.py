from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.catalog import store
from lcursor.catalog.manifest import Model
from lcursor.errors import ModelMissing, ModelUnknown, ModelUnsuitable


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LCURSOR_MODELS": "/m", "LCURSOR_DATA": "/d"}, "/m"),
        ({"LCURSOR_DATA": "/d", "XDG_DATA_HOME": "/x"}, "/d/models"),
        ({"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/lcursor/models"),
        ({"HOME": "/h"}, "/h/.local/share/lcursor/models"),
        ({"LCURSOR_MODELS": "~/m", "HOME": "/h"}, "/h/m"),
    ],
)
def test_the_folder_of_the_models(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("LCURSOR_MODELS", "LCURSOR_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert store.models_dir() == Path(expected)


def test_resolve_finds_a_name_and_a_path(tiny: Model, tmp_path: Path) -> None:
    target = store.path_of(tiny)
    target.parent.mkdir()
    target.write_bytes(b"x")
    assert store.resolve("tiny", "completion") == target
    assert store.resolve(str(target), "completion") == target


def test_resolve_says_what_is_wrong(tiny: Model, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="not on this machine") as missing:
        store.resolve("tiny", "completion")
    assert missing.value.hint == (
        "Run :LCursor install, or in a shell python -m lcursor models pull tiny"
    )
    with pytest.raises(ModelMissing, match="no model file"):
        store.resolve(str(tmp_path / "a.gguf"), "completion")
    with pytest.raises(ModelUnknown) as unknown:
        store.resolve("tinny", "completion")
    assert "tiny" in unknown.value.hint
    with pytest.raises(ModelUnsuitable) as unsuitable:
        store.resolve("tiny-hub", "completion")
    assert unsuitable.value.hint == "Models for it: tiny"


def test_resolve_reports_a_partial_file(tiny: Model) -> None:
    target = store.path_of(tiny)
    target.parent.mkdir()
    store.partial_of(target).write_bytes(b"x")
    with pytest.raises(ModelMissing, match="only partly downloaded"):
        store.resolve("tiny", "completion")


def test_a_record_holds_until_the_file_changes(tiny: Model) -> None:
    target = store.path_of(tiny)
    target.parent.mkdir()
    target.write_bytes(b"x")
    assert store.read_record(target, tiny) is None
    written = store.write_record(target, tiny, str(tiny.sha256), "hub", "abc")
    assert store.read_record(target, tiny) == written
    target.write_bytes(b"y")
    assert store.read_record(target, tiny) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sha256": 1}', "null"])
def test_a_broken_record_counts_as_none(tiny: Model, text: str) -> None:
    target = store.path_of(tiny)
    target.parent.mkdir()
    target.write_bytes(b"x")
    target.with_name("tiny.gguf.json").write_text(text)
    assert store.read_record(target, tiny) is None
