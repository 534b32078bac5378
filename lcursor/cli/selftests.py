"""The doctor's self-tests of engine and chat server, each in a process of its own."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from lcursor.cli.facts import Fact
from lcursor.errors import EngineFailed, ServerEnded
from lcursor.installer import selftest


def engine(is_on_gpu: bool) -> Fact:
    """Test the engine in a process of its own, which may crash."""
    outcome = selftest.run_engine(Path(sys.executable), on_gpu=is_on_gpu)
    fact = Fact("selftest", f"the engine {outcome.sentence}", {"kind": outcome.kind})
    if outcome.kind != "passed":
        fact.problem = EngineFailed(
            f"The engine {outcome.sentence}",
            "Run :LCursor install, which finds a build that works; in a checkout:"
            f" python3 lcursor/install.py --venv {shlex.quote(sys.prefix)} --verify",
        )
    return fact


def chat_server() -> Fact:
    """Test the chat server with a tiny model."""
    outcome = selftest.run_server(Path(sys.executable))
    fact = Fact("chat_selftest", f"the chat server {outcome.sentence}", {"kind": outcome.kind})
    if outcome.kind != "passed":
        fact.level = "warn"
        fact.problem = ServerEnded(
            f"The chat server {outcome.sentence}",
            "Put a llama-server of llama.cpp that was built for this machine on PATH, or name a"
            " server in chat.models",
        )
    return fact
