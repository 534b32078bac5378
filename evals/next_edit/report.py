"""The figures of `eval next`, and its tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from bench.report import head, percentile, table
from evals.next_edit.labels import LABELS
from evals.next_edit.replay import (
    ACCEPT_KEYS,
    JUMP_KEYS,
    ORDERS,
    REJECT_KEYS,
    Basis,
    Done,
    Session,
    Shown,
    Silence,
)
from evals.next_edit.traps import Judged
from lcursor.next_edit.records import Kind
from lcursor.next_edit.rename import LOCAL

KINDS: tuple[str, ...] = tuple(kind for kind in get_args(Kind) if kind != "model")
STATES = ("done", "new code", "format")
SAMPLES = 400
"""Of the bootstrap, which draws commits."""
MAX_MISTAKES = 20


def as_dict(
    sessions: Sequence[Session], traps: Sequence[Judged], facts: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return the report as JSON; a share of nothing is None."""
    shown = [one for session in sessions for one in session.shown]
    done = [one for session in sessions for one in session.done]
    silences = [one for session in sessions for one in session.silences]
    times = [ms for session in sessions for ms in session.times_ms]
    languages = sorted({one.language for one in done})
    return {
        "precision": _by_kind(shown, lambda one: one.is_right) | _of_renames(shown),
        "exact": _by_kind(shown, lambda one: one.is_exact),
        "coverage": {"all": _covered(done)} | {one: _covered_label(done, one) for one in LABELS},
        "quiet": {
            "all": _share(not one.kind for one in silences),
            **{kind: _share(one.kind != kind for one in silences) for kind in KINDS},
            **{name: _quiet(silences, name) for name in STATES},
        },
        "harm": _by_kind(shown, lambda one: one.is_harmful),
        "keys_saved": _keys(sessions, done, shown),
        "steps": len(done),
        "shown": {"all": len(shown)} | {kind: _count(shown, kind) for kind in KINDS},
        "follow_ups": {"all": sum(not one.is_first for one in done)}
        | {one: sum(each.follows and each.label == one for each in done) for one in LABELS},
        "basis": {
            label: {name: _basis(done, label, name) for name in get_args(Basis)[1:]}
            for label in LABELS[:3]
        },
        "location": {
            "at_1": _share(one.is_located for one in shown),
            "at_3": _share(one.is_located_3 for one in shown),
        },
        "syntax_errors": sum(one.adds_error for one in shown),
        "reverts": sum(one.reverts for one in shown),
        "intervals": _intervals(sessions, seed),
        "languages": {name: _row(sessions, "language", name) for name in languages},
        "orders": {name: _row(sessions, "order", name) for name in ORDERS},
        "commits": len({session.commit for session in sessions}),
        "ms": {"p50": percentile(times, 50), "p95": percentile(times, 95)} if times else {},
        "traps": {
            "all": len(traps),
            "wrong": [f"{one.name}: {one.detail}" for one in traps if one.outcome == "wrong"],
            "missed": [one.name for one in traps if one.outcome == "missed"],
        },
        "mistakes": mistakes(shown)[:MAX_MISTAKES],
        **facts,
    }


def mistakes(shown: Sequence[Shown]) -> list[str]:
    """Return the wrong proposals, each once, in the order of their commits."""
    lines = []
    for one in shown:
        if not one.is_right:
            place = f"{one.commit} {one.path}:{one.row + 1}"
            texts = " ⏎ ".join(one.old).strip(), " ⏎ ".join(one.new).strip()
            lines.append(f"{one.kind} {place}: {one.cause}: `{texts[0]}` → `{texts[1]}`")
    return [*dict.fromkeys(lines)]


def _share(flags: Iterable[bool]) -> float | None:
    found = [*flags]
    return round(sum(found) / len(found), 4) if found else None


def _count(shown: Sequence[Shown], kind: str) -> int:
    return sum(one.kind == kind for one in shown)


def _by_kind(shown: Sequence[Shown], is_true: Callable[[Shown], bool]) -> dict[str, float | None]:
    kinds = {kind: _share(is_true(one) for one in shown if one.kind == kind) for kind in KINDS}
    return {"all": _share(map(is_true, shown)), **kinds}


def _of_renames(shown: Sequence[Shown]) -> dict[str, float | None]:
    """Return the share of right renames of variables in functions, and of other names."""
    found = [one for one in shown if one.kind == "rename"]
    return {
        "rename_local": _share(one.is_right for one in found if one.confidence == LOCAL),
        "rename_other": _share(one.is_right for one in found if one.confidence != LOCAL),
    }


def _covered(done: Iterable[Done]) -> float | None:
    """Return the share of accepted steps, of all but the first ones."""
    return _share(one.is_accepted for one in done if not one.is_first)


def _covered_label(done: Iterable[Done], label: str) -> float | None:
    """Return the share of accepted steps, of those that follow one with the same cause."""
    return _share(one.is_accepted for one in done if one.follows and one.label == label)


def _quiet(silences: Iterable[Silence], state: str) -> float | None:
    return _share(not one.kind for one in silences if one.state == state)


def _keys(
    sessions: Sequence[Session], done: Sequence[Done], shown: Sequence[Shown]
) -> dict[str, float | None]:
    """Return the net shares of keys saved; a wrong proposal costs keys too.

    `repetitive` is for the commits with a step that follows a rename or repeats another one.
    """
    repetitive = {
        one.commit for one in done if one.follows and one.label in ("rename", "repetition")
    }
    chosen = [session for session in sessions if session.commit in repetitive]
    found = {"all": _saved(sessions), "repetitive": _saved(chosen)}
    found |= {"ceiling": _ceiling(sessions), "repetitive_ceiling": _ceiling(chosen)}
    for label in LABELS:
        some = [one for one in done if one.label == label]
        wrong = sum(one.kind == label and not one.is_right for one in shown)
        found[label] = _saved_keys(some, wrong)
    return found


def _saved(sessions: Iterable[Session]) -> float | None:
    found = [*sessions]
    wrong = sum(not one.is_right for session in found for one in session.shown)
    return _saved_keys([one for session in found for one in session.done], wrong)


def _saved_keys(done: Sequence[Done], wrong: int) -> float | None:
    by_hand = sum(one.keys_by_hand for one in done)
    keys = sum(one.keys for one in done) + REJECT_KEYS * wrong
    return round(1 - keys / by_hand, 4) if by_hand else None


def _basis(done: Iterable[Done], label: str, basis: str) -> dict[str, float | None]:
    """Return the count of steps with a label and a basis, and the share that was proposed."""
    found = [one.is_accepted for one in done if (one.label, one.basis) == (label, basis)]
    return {"steps": len(found), "proposed": _share(found)}


def _ceiling(sessions: Iterable[Session]) -> float | None:
    """Return the share of keys saved if each labelled step that follows another were accepted."""
    done = [one for session in sessions for one in session.done]
    by_hand = sum(one.keys_by_hand for one in done)
    saved = sum(
        one.keys_by_hand - ACCEPT_KEYS - JUMP_KEYS
        for one in done
        if one.follows and one.label in LABELS[:3]
    )
    return round(saved / by_hand, 4) if by_hand else None


def _row(sessions: Sequence[Session], field: str, name: str) -> dict[str, Any]:
    """Return the figures for one language or one order."""
    shown = [x for one in sessions for x in one.shown if getattr(x, field) == name]
    done = [x for one in sessions for x in one.done if getattr(x, field) == name]
    return {
        "steps": len(done),
        "shown": len(shown),
        "precision": _share(one.is_right for one in shown),
        "coverage": _covered(done),
        "harm": _share(one.is_harmful for one in shown),
        "keys_saved": _saved_keys(done, sum(not one.is_right for one in shown)),
    }


def _intervals(sessions: Sequence[Session], seed: int) -> dict[str, list[float]]:
    """Return 95 % intervals of precision and keys saved, by a bootstrap over the commits."""
    by_commit: dict[str, list[Session]] = {}
    for session in sessions:
        by_commit.setdefault(session.commit, []).append(session)
    sums = []
    for group in by_commit.values():
        right = sum(one.is_right for session in group for one in session.shown)
        shown = sum(len(session.shown) for session in group)
        by_hand = sum(one.keys_by_hand for session in group for one in session.done)
        keys = sum(one.keys for session in group for one in session.done)
        sums.append((right, shown, keys + REJECT_KEYS * (shown - right), by_hand))
    if not any(shown for _, shown, _, _ in sums):
        return {}
    rng = random.Random(seed)
    precisions, saved = [], []
    for _ in range(SAMPLES):
        sample = rng.choices(sums, k=len(sums))
        right, shown, keys, by_hand = (sum(column) for column in zip(*sample, strict=True))
        precisions.append(right / shown if shown else 1.0)
        saved.append(1 - keys / by_hand)
    return {"precision": _ends(precisions), "keys_saved": _ends(saved)}


def _ends(samples: Sequence[float]) -> list[float]:
    ordered = sorted(samples)
    return [round(ordered[int(len(ordered) * at)], 4) for at in (0.025, 0.975)]


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    lines = head(
        document,
        f"Commits: {document['commits']} of {document['repository']} at {document['revision']}, "
        f"{len(ORDERS)} orders, {document['steps']} steps",
    )
    rows = [
        (kind, document["shown"][kind], _percent(document["precision"][kind]))
        + (_percent(document["exact"][kind]), _percent(document["harm"][kind]))
        for kind in ("all", *KINDS)
    ]
    lines += table(["proposals", "shown:", "right:", "all of a step:", "harmful:"], rows)
    local, other = (
        _percent(document["precision"][f"rename_{name}"]) for name in ("local", "other")
    )
    lines += ["", f"Renames: of variables in functions {local} right, of other names {other}."]
    interval = document["intervals"].get("precision")
    if interval:
        at_1, at_3 = (_percent(document["location"][name]) for name in ("at_1", "at_3"))
        lines += [
            "",
            f"Right: 95 % interval {_percent(interval[0])} to {_percent(interval[1])}; at a place "
            f"that changes: first {at_1}, one of three {at_3}; {document['syntax_errors']} add a "
            f"syntax error, {document['reverts']} revert the last edit.",
        ]
    labelled = [
        (name, document["follow_ups"][name], _percent(document["coverage"][name]))
        + (_percent(document["keys_saved"][name], 1),)
        for name in ("all", *LABELS)
    ]
    lines += ["", *table(["steps labelled", "follow-ups:", "proposed:", "keys saved:"], labelled)]
    saved = {name: _percent(share, 1) for name, share in document["keys_saved"].items()}
    bases = [
        (f"{label}, after {basis}", found["steps"], _percent(found["proposed"]))
        for label, row in document["basis"].items()
        for basis, found in row.items()
        if found["steps"]
    ]
    lines += ["", *table(["follow-ups by basis", "steps:", "proposed:"], bases)]
    lines += [
        "",
        f"Keys saved in commits that rename or repeat: {saved['repetitive']}; if each follow-up of "
        f"a rename, signature or repetition were accepted: {saved['repetitive_ceiling']}, in all "
        f"commits {saved['ceiling']}.",
    ]
    for title, key in (("language", "languages"), ("order", "orders")):
        columns = [title, "steps:", "shown:", "right:", "proposed:", "keys saved:"]
        figures = [
            (name, row["steps"], row["shown"], _percent(row["precision"]))
            + (_percent(row["coverage"]), _percent(row["keys_saved"], 1))
            for name, row in document[key].items()
        ]
        lines += ["", *table(columns, figures)]
    quiet = ", ".join(f"{name} {_percent(document['quiet'][name], 1)}" for name in STATES)
    traps = document["traps"]
    lines += ["", f"Quiet: {quiet}."]
    if document["ms"]:
        lines.append(
            f"Time: p50 {document['ms']['p50']:.1f} ms, p95 {document['ms']['p95']:.1f} ms."
        )
    missed = len(traps["missed"])
    lines.append(f"Traps: {traps['all']}, {len(traps['wrong'])} wrong, {missed} missed.")
    for name, found in (("Wrong in traps", traps["wrong"]), ("Wrong", document["mistakes"])):
        lines += ["", f"{name}:", "", *(f"- {one}" for one in found)] if found else []
    return lines


def _percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"
