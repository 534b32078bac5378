"""Recorded messages of models are read as meant: their calls, no call, or malformed.

`calls.jsonl` has a message in each line: `id`, with the source and a number; `kind`, the form;
`dialect`, the form that the model was asked for; `text`; `finish`, which is `length` if the message
was cut off at the token limit; and `right`, the calls in order, `none` if the message is text, or
`malformed` if the model has to repeat it. All texts are our own work or the output of a local
model, under the licence of this repository; the forms come from reports to ollama, vLLM, goose,
opencode, codex and llama.cpp.

- `made-…`: calls in the forms that models use, and mutations of them. The right reading follows
  from the form and the mutation.
- `written-…`: written by hand.
- `qwen2.5-coder-…`: written by that model on short tasks; the right reading was set by hand.

The rules of a right reading: a call counts only in a form that its sender cannot have meant
otherwise, with a known tool, its required arguments and no unknown ones. JSON is repaired if it has
a comma too many, line breaks in texts, or lacks its last brace. What is quoted (in code, in a block
of code, in reasoning, after "for example") is text. A fenced block is one action, and two are
malformed. A right reading must never be computed by the code under test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import Answer, Known, ToolCall

DIALECTS: Mapping[str, Dialect] = {"native": Native(), "fenced": Fenced()}


def test_each_message_is_read_as_meant() -> None:
    corpus = (Path(__file__).parent / "calls.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in corpus.split("\n") if line]
    assert len({row["id"] for row in rows}) == len(rows) == 566
    for row in rows:
        answer = Answer(row["text"], row["finish"])
        dialect = DIALECTS[row["dialect"]]
        reply = dialect.parse(answer, dialect.tools, Known())
        found = "malformed" if reply.problem else list(reply.calls) or "none"
        right = row["right"]
        if not isinstance(right, str):
            right = [ToolCall(one["tool"], one["arguments"]) for one in right]
        assert found == right, (row["id"], reply.problem)
