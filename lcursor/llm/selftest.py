"""The child process of the chat server's self-test: start it with a tiny model, compare the logits.

    python -m lcursor.llm.selftest

The server is a different build of llama.cpp than the engine, with its own kernels. Prints the same
lines as `fim/selftest.py`, for the same parent (`installer/selftest.py`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from lcursor.catalog import selftest_model
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError, ServerEnded
from lcursor.http.client import Client
from lcursor.llm.server import LocalServer

CONTEXT_TOKENS = 1024


def main() -> int:
    """Run the self-test and return the exit status."""
    with tempfile.TemporaryDirectory(prefix="lcursor-selftest-") as folder:
        tiny = Path(folder) / "tiny.gguf"
        selftest_model.write(tiny)
        config = ChatConfig(model=str(tiny), context_tokens=CONTEXT_TOKENS)
        server = LocalServer(config, Path(folder) / "server", lambda _: None)
        try:
            _say(doing="loading the model tiny")
            target = server.ensure()
            client = Client(target.url, target.key, "chat")
            try:
                _say(**_test(client))
            finally:
                client.close()
        except ServerEnded as error:
            _say(result="crashed", message=error.message)
        except LcursorError as error:
            is_gone = server.status().state in ("none", "failed")
            _say(result="crashed" if is_gone else "error", message=error.message)
        finally:
            server.stop()
            server.close()
    return 0


def _say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _test(client: Client) -> dict[str, str]:
    expected = selftest_model.references()["tiny"]
    worst = 0.0
    for batch in selftest_model.BATCHES:
        step = f"reading {batch} tokens"
        _say(doing=step)
        error = selftest_model.error(_logits(client, batch), expected[str(batch)])
        worst = max(worst, error)
        if not error <= selftest_model.MAX_ERROR:
            most = selftest_model.MAX_ERROR
            return {
                "result": "wrong",
                "message": f"{step}: error {error:.3g}, at most {most} is right",
            }
    return {"result": "passed", "message": f"largest error {worst:.2g}"}


def _logits(client: Client, batch: int) -> list[float]:
    """Return the sampled logits, up to a constant: the server gives logarithms of probabilities."""
    body = {
        "prompt": selftest_model.tokens(batch),
        "n_predict": 1,
        "n_probs": selftest_model.VOCABULARY,
        # It generates a token of complete text: for half a character it reports no probabilities.
        "logit_bias": [[selftest_model.VOCABULARY - 1, 1000]],
        "cache_prompt": False,
    }
    answer = json.loads(b"\n".join(client.stream("/completion", body)))
    logits = [float("nan")] * selftest_model.VOCABULARY
    for each in answer["completion_probabilities"][0]["top_logprobs"]:
        logits[each["id"]] = each["logprob"]
    return selftest_model.sample(logits)


if __name__ == "__main__":
    sys.exit(main())
