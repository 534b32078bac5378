"""Record what a Python program does before a test fails; see `workspace.evidence`.

The interpreter of the project runs this at its start, as the folder is on PYTHONPATH: standard
library only, Python 3.9 or newer. It traces the functions of the project, and appends a line of
JSON for each failure that unittest, pytest or the interpreter reports.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from atexit import register
from collections import deque
from collections.abc import Callable
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Any

FOLDER = os.environ.get("LCURSOR_EVIDENCE", "")
ROOT = os.environ.get("LCURSOR_EVIDENCE_ROOT", "") + os.sep
MAX_FAILURES = 3
MAX_CALLS = 12
MAX_FRAMES = 3
MAX_NAMES = 8
MAX_CHARS = 120
MAX_ITEMS = 6
MAX_DEPTH = 3
MAX_HITS = 2000
"""Calls of a function that are traced; later ones are ignored, so that loops stay fast."""
FOREIGN = ("/site-packages/", "/dist-packages/", "/.venv/", "/node_modules/")
GENERATOR = 0x20 | 0x80 | 0x200
"""Flags of code that returns more than once."""

Lines = dict[CodeType, set[int]]


class _Record:
    """What the present test has done."""

    def __init__(self) -> None:
        self.name = ""
        self.failed: list[tuple[dict[str, Any], Lines]] = []
        """What is known about failures, and the lines that ran in their tests."""
        self.calls: deque[dict[str, Any]] = deque(maxlen=MAX_CALLS)
        self.lines: Lines = {}
        self.passed: Lines = {}
        """Lines that ran in tests that passed."""
        self.has_failed = False

    def begin(self, name: str) -> None:
        self.name, self.has_failed = name, False
        self.calls.clear()
        self.lines = {}
        _hits.clear()

    def end(self) -> None:
        if not self.has_failed:
            for code, lines in self.lines.items():
                self.passed.setdefault(code, set()).update(lines)


record = _Record()
_known: dict[CodeType, bool] = {}
_hits: dict[CodeType, int] = {}
_busy = threading.local()


def _is_own(code: CodeType) -> bool:
    """Return whether code belongs to the project, and is a function or a module."""
    known = _known.get(code)
    if known is None:
        path = "" if code.co_filename.startswith("<") else _absolute(code.co_filename)
        is_part = code.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
        is_foreign = any(each in path for each in FOREIGN)
        known = _known[code] = path.startswith(ROOT) and not is_part and not is_foreign
    return known


def _trace(frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
    """Begin to trace a call."""
    code = frame.f_code
    if event != "call" or getattr(_busy, "is_set", False) or not _is_own(code):
        return None
    hits = _hits[code] = _hits.get(code, 0) + 1
    if hits > MAX_HITS:
        return None
    lines: set[int] = set()
    if code.co_name == "<module>" or code.co_flags & GENERATOR or _is_test(code):
        call = None
    else:
        call = {
            "name": getattr(code, "co_qualname", code.co_name),
            "path": _relative(code.co_filename),
            "line": code.co_firstlineno,
            "arguments": _arguments(frame),
            "result": "",
            "raised": "",
            "frame": frame,
        }

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
            if call is not None:
                call["raised"] = ""
        elif event == "exception" and call is not None:
            call["raised"] = _show(arg[1])
        elif event == "return":
            record.lines.setdefault(code, set()).update(lines)
            if call is not None:
                if arg is not None or not call["raised"]:
                    call["result"], call["raised"] = _show(arg), ""
                record.calls.append(call)
        return local

    return local


def _is_test(code: CodeType) -> bool:
    return code.co_name.startswith(("test", "setUp", "tearDown"))


def _arguments(frame: FrameType) -> list[tuple[str, str]]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [(name, _show(frame.f_locals.get(name))) for name in names[:MAX_NAMES]]


def _show(value: Any) -> str:
    """Return a short text for a value. Runs code of the project, untraced."""
    if getattr(_busy, "is_set", False):
        return "…"
    _busy.is_set = True
    try:
        text = _text(value, MAX_DEPTH)
    except Exception as error:  # noqa: BLE001 - a __repr__ of the project
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    finally:
        _busy.is_set = False
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _text(value: Any, depth: int) -> str:
    kind: Any = type(value)
    if kind in (list, tuple, set, frozenset, deque):
        if not value:
            return repr(value)
        if depth == 0:
            return f"{kind.__name__}({len(value)} items)"
        inner = [_text(each, depth - 1) for each in _first(value)]
        more = ["…"] if len(value) > MAX_ITEMS else []
        form = "[{}]" if kind is list else "({})" if kind is tuple else kind.__name__ + "({})"
        return form.format(", ".join(inner + more))
    if isinstance(value, dict) and kind.__repr__ is dict.__repr__:
        if depth == 0 and value:
            return f"{{{len(value)} items}}"
        pairs = [f"{key!r}: {_text(value[key], depth - 1)}" for key in _first(value)]
        more = ["…"] if len(value) > MAX_ITEMS else []
        return "{" + ", ".join(pairs + more) + "}"
    if isinstance(value, BaseException):
        return "{}({})".format(kind.__name__, ", ".join(map(repr, value.args)))
    if kind.__repr__ is object.__repr__ and hasattr(value, "__dict__") and depth:
        pairs = [f"{name}={_text(vars(value)[name], depth - 1)}"
                 for name in _first(vars(value))]  # fmt: skip
        return "{}({})".format(kind.__name__, ", ".join(pairs))
    if kind in (str, bytes) and len(value) > MAX_CHARS:
        return repr(value[:MAX_CHARS]) + "…"
    return repr(value)


def _first(values: Any) -> list[Any]:
    return list(islice(values, MAX_ITEMS))


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _relative(path: str) -> str:
    path = _absolute(path)
    return path[len(ROOT) :] if path.startswith(ROOT) else path


def _calls(own: list[TracebackType], error: BaseException) -> list[dict[str, Any]]:
    """Return the last calls, of which some may have raised the error."""
    raising = [each.tb_frame for each in own]
    calls = []
    for call in record.calls:
        shown = {name: value for name, value in call.items() if name != "frame"}
        if call["frame"] in raising:
            shown["raised"] = _show(error)
        calls.append(shown)
    return calls


def fail(error: BaseException, traceback: TracebackType | None) -> None:
    """Write what is known about a failure."""
    record.has_failed = True
    if len(record.failed) == MAX_FAILURES:
        return
    frames, own = [], []
    while traceback is not None:
        if _is_own(traceback.tb_frame.f_code):
            own.append(traceback)
        traceback = traceback.tb_next
    for each in own[-MAX_FRAMES:]:
        names = {name: value for name, value in each.tb_frame.f_locals.items()
                 if not name.startswith("__") and not _is_dull(value)}  # fmt: skip
        frames.append(
            {
                "name": each.tb_frame.f_code.co_name,
                "path": _relative(each.tb_frame.f_code.co_filename),
                "line": each.tb_lineno,
                "names": [(name, _show(names[name])) for name in list(names)[:MAX_NAMES]],
            }
        )
    if not frames:
        return
    found = {
        "test": record.name,
        "error": _show(error),
        "frames": frames,
        "calls": _calls(own, error),
    }
    record.failed.append((found, record.lines))


def _write() -> None:
    """Write the failures, with the lines that ran in no test that passed."""
    if not record.failed:
        return
    with open(os.path.join(FOLDER, f"{os.getpid()}.jsonl"), "w", encoding="utf-8") as file:
        for found, lines in record.failed:
            only = [
                [_relative(code.co_filename), code.co_name, sorted(ran - record.passed[code])]
                for code, ran in lines.items()
                if code in record.passed and not _is_test(code) and ran - record.passed[code]
            ]
            file.write(json.dumps({**found, "only": only}) + "\n")


def _is_dull(value: Any) -> bool:
    """Return whether a value is a module, a class or a function, or the test itself."""
    kind = type(value)
    is_test = any(each.__name__ == "TestCase" for each in kind.__mro__)
    return is_test or kind.__name__ in ("module", "function", "type", "ABCMeta", "EnumMeta")


def _watch_unittest() -> None:
    """Let unittest report its failures."""
    import unittest.result as unittest_result

    result = unittest_result.TestResult

    def before(name: str, act: Callable[..., None]) -> None:
        original = getattr(result, name)

        def method(self: Any, *given: Any) -> Any:
            act(*given)
            return original(self, *given)

        setattr(result, name, method)

    def report(_test: Any, error: tuple[Any, BaseException, TracebackType | None]) -> None:
        fail(error[1], error[2])

    def report_part(_test: Any, _part: Any, error: Any) -> None:
        if error is not None:
            report(None, error)

    before("startTest", lambda test: record.begin(str(test)))
    before("stopTest", lambda test: record.end())
    before("addFailure", report)
    before("addError", report)
    before("addSubTest", report_part)


def _report_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    fail(error, traceback)
    sys.__excepthook__(kind, error, traceback)


def _run_next() -> None:
    """Run the sitecustomize of the environment, in whose place this one was found."""
    here = os.path.dirname(os.path.abspath(__file__))
    from importlib.machinery import PathFinder

    path = [each for each in sys.path if os.path.abspath(each or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        spec.loader.exec_module(module_from_spec(spec))


_run_next()
if FOLDER and os.path.isdir(FOLDER):
    register(_write)
    sys.excepthook = _report_uncaught
    _watch_unittest()
    threading.settrace(_trace)
    sys.settrace(_trace)
