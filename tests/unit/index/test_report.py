"""What indexing a project will mean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lcursor import system
from lcursor.code import languages
from lcursor.index.report import summarize
from lcursor.project import filetypes, listing
from lcursor.project.secrets import SecretGlobs
from tests.unit.project.trees import write


def test_a_report_has_sizes_languages_and_reasons(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b.py", text="x" * 1000)
    write(tmp_path, "c.lua", text="y" * 5000)
    write(tmp_path, ".env", text="KEY=1")
    write(tmp_path, "node_modules/m/x.js", "sub/node_modules/m/x.js")
    report = summarize(listing.survey(tmp_path), SecretGlobs(tmp_path))
    assert (report.files, report.bytes) == (3, 7000)
    assert {name: (part.files, part.bytes) for name, part in report.languages.items()} == {
        languages.detect("c.lua"): (1, 5000),
        languages.detect("a.py"): (2, 2000),
    }
    assert next(iter(report.languages)) == languages.detect("c.lua")
    assert report.ignored == {"node_modules": 2, filetypes.by_name(".env", 5): 1}
    assert 0 < report.seconds < 1
    assert 0 < report.embed_seconds < 10


def test_the_estimate_follows_from_the_load_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.py", text="x" * 1000)
    monkeypatch.setattr(system, "usable_cores", lambda: 2)
    times = []
    for load in (0.0, 1.0, 5.0):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        report = summarize(listing.survey(tmp_path), SecretGlobs(tmp_path))
        times.append((report.seconds, report.embed_seconds))
    assert times[0] == times[1]
    assert times[2] == pytest.approx((3 * times[0][0], 3 * times[0][1]))
