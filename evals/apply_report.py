"""What the outcomes of `apply.py` come to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evals.apply import Judged


def as_dict(found: Sequence[Judged], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything for JSON.

    `right_share` is of the replies that have one right answer; `refused` counts those among all
    that were asked about or left alone, `wrong` those that were applied otherwise than right.
    """
    unique = [one for one in found if one.task.is_unique]
    rows = {}
    for name in dict.fromkeys((one.task.form, one.task.mangled) for one in found):
        some = [one for one in found if (one.task.form, one.task.mangled) == name]
        rows[" ".join(name)] = _counted(some)
    return {
        **facts,
        "total": len(found),
        "right_share": round(_share(unique), 4),
        "refused": sum(one.outcome == "refused" for one in found),
        "wrong": sum(one.outcome == "wrong" for one in found),
        "unique": len(unique),
        "rows": rows,
        "missed": [_told(one) for one in unique if one.outcome == "refused"],
        "mistakes": [_told(one) for one in found if one.outcome == "wrong"],
    }


def last_line(document: dict[str, Any]) -> dict[str, Any]:
    """Return the four numbers that count."""
    return {key: document[key] for key in ("total", "right_share", "refused", "wrong")}


def as_markdown(document: dict[str, Any]) -> str:
    """Return what `as_dict` made as a table, with what was missed."""
    lines = [
        "| reply | n | one right answer | of those right | refused | wrong |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, row in document["rows"].items():
        share = f"{100 * row['right_share']:.0f} %" if row["unique"] else "–"
        cells = (row["total"], row["unique"], share, row["refused"], row["wrong"])
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    for title, key in (("Missed", "missed"), ("Wrong", "mistakes")):
        if document[key]:
            lines += ["", f"{title}:", ""]
            lines += [f"- {one['name']}: {one['detail']}" for one in document[key]]
    lines += [
        "",
        f"{document['total']} replies; of {document['unique']} with one right answer "
        f"{100 * document['right_share']:.1f} % applied right; "
        f"{document['refused']} refused or asked, {document['wrong']} wrong",
    ]
    return "\n".join(lines)


def _counted(some: Sequence[Judged]) -> dict[str, Any]:
    unique = [one for one in some if one.task.is_unique]
    counts = Counter(one.outcome for one in some)
    return {
        "total": len(some),
        "unique": len(unique),
        "right_share": round(_share(unique), 4),
        "right": counts["right"],
        "refused": counts["refused"],
        "wrong": counts["wrong"],
    }


def _share(unique: Sequence[Judged]) -> float:
    return sum(one.outcome == "right" for one in unique) / len(unique) if unique else 1.0


def _told(one: Judged) -> dict[str, str]:
    return {"name": one.task.name, "detail": one.detail}
