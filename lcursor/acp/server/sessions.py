"""`lcursor acp`: the agent for other editors, over the Agent Client Protocol, version 1.

A session is a run: its id is the run's key, so that it is found again after a restart. Each prompt
starts the run or continues it, on a thread of its own. At the end each changed file is shown as a
difference and written once the user allows it, by the editor if it can, so that unsaved text stays
and its own review works.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from lcursor import __version__
from lcursor.acp.server import messages
from lcursor.acp.server.editor import UNKNOWN_METHOD, OtherEditor, Problem
from lcursor.acp.server.written import ChangeWriter
from lcursor.agent import run_log, runs
from lcursor.agent.records import Policy
from lcursor.agent.run_log import RunLog
from lcursor.agent.standalone import Standalone, start_message
from lcursor.agent.tools.table import TOOLS
from lcursor.errors import LcursorError
from lcursor.project.reading import Reader
from lcursor.project.root import root_of
from lcursor.protocol.agent import AgentResume
from lcursor.storage import folders

VERSION: Final = 1
MODES: Final = {
    "auto": ("Auto", "All commands run in the sandbox"),
    "ask": ("Ask", "Commands need your permission"),
    "plan": ("Plan", "It reads, and shows a plan before it changes anything"),
}
KINDS: Final = {
    "read": "read", "edit": "edit", "command": "execute", "search": "search",
    "finish": "other", "note": "think",
}  # fmt: skip
STATES: Final = {
    "running": "in_progress", "waiting": "pending", "done": "completed", "failed": "failed",
    "rejected": "failed",
}  # fmt: skip
ALLOW: Final = {"optionId": "once", "name": "Allow", "kind": "allow_once"}
ALLOW_ALL: Final = {"optionId": "run", "name": "Allow in this session", "kind": "allow_always"}
REJECT: Final = {"optionId": "reject", "name": "Reject", "kind": "reject_once"}
FENCES: Final = tuple(f"```{word}" for tool in TOOLS for word in tool.examples)
CALLS: Final = {"choice": ("\n",), "fenced": FENCES}
"""Where the calls begin in what a model writes, by dialect."""
TAGS: Final = ("<tool_call>", "<function=")
"""The same, in the others."""
MAX_LISTED: Final = 50


@dataclass(slots=True)
class Session:
    """A session of the editor."""

    key: str
    cwd: Path
    mode: str
    model: str
    has_begun: bool = False
    remark: str = ""
    """Shown below the next answer."""
    prompt: int = 0
    """Number of the prompt that is being worked on; 0 for none."""
    is_cancelled: bool = False
    messages: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = field(
        default_factory=queue.SimpleQueue
    )
    """What the service sends for this prompt."""


class Server:
    """The agent for one editor.

    Args:
        mode: of new sessions, a key of `MODES`.
        secrets: globs of files that are never read, in addition to the built-in ones.
    """

    def __init__(
        self, editor: OtherEditor, mode: str = "auto", secrets: Sequence[str] = ()
    ) -> None:
        self._editor, self._mode, self._secrets = editor, mode, tuple(secrets)
        self._sessions: dict[str, Session] = {}
        self._by_prompt: dict[int, Session] = {}
        self._last_prompt = 0
        self._files: Mapping[str, Any] = {}
        """What the editor does with files."""
        self.opened: Standalone
        """Set before `serve`."""

    def emit(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a message of the service. Thread: any."""
        if session := self._by_prompt.get(params.get("id", 0)):
            session.messages.put((method, params))

    def serve(self) -> None:
        """Answer requests until the editor ends."""
        handlers: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any] | None]] = {
            "initialize": self._initialize,
            "authenticate": lambda _: {},
            "session/new": self._new,
            "session/load": lambda params: self._open(params, shows=True),
            "session/resume": lambda params: self._open(params, shows=False),
            "session/list": self._list,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/cancel": self._cancel,
        }
        for row in self._editor.requests():
            params = row["params"] if isinstance(row.get("params"), dict) else {}
            method, number = row["method"], row.get("id")
            try:
                if method == "session/prompt":
                    self._prompt(number, params)
                elif handle := handlers.get(method):
                    result = handle(params)
                    if "id" in row:
                        self._editor.answer(number, result or {})
                elif "id" in row:
                    self._editor.fail(number, f"there is no method {method}", UNKNOWN_METHOD)
            except Problem as problem:
                self._editor.fail(number, str(problem), problem.code)
            except LcursorError as error:
                self._editor.fail(number, str(error))
            except Exception:  # noqa: BLE001 - one wrong request must not end all sessions
                traceback.print_exc()
                self._editor.fail(number, "the request failed because of a bug in lcursor")

    # Requests. Thread: that of `serve`.

    def _initialize(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        given = params.get("clientCapabilities")
        files = given.get("fs") if isinstance(given, dict) else None
        self._files = files if isinstance(files, dict) else {}
        return {
            "protocolVersion": VERSION,
            "agentInfo": {"name": "lcursor", "title": "lcursor", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"embeddedContext": True},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }

    def _new(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        cwd = _folder(params)
        folder = runs.create(root_of(cwd))
        model, remark = self.opened.models.names()[0], _about_servers(params)
        session = Session(folder.name, cwd, self._mode, model, remark=remark)
        self._sessions[session.key] = session
        return {"sessionId": session.key, **self._choices(session)}

    def _open(self, params: Mapping[str, Any], *, shows: bool) -> Mapping[str, Any]:
        key, cwd = str(params.get("sessionId")), _folder(params)
        known = self._sessions.get(key)
        if known is not None and known.prompt:
            raise Problem("this session still works on an earlier message")
        if known is not None and not known.has_begun:
            return self._choices(known)
        state = RunLog.open(runs.find(root_of(cwd), key)).state
        mode = state.policy if state.policy in MODES else self._mode
        session = Session(key, cwd, mode, state.model, True, _about_servers(params))
        self._sessions[key] = session
        if shows:
            self._update(key, "user_message_chunk", content=_text(state.task))
            self._begin(session)
            service = self.opened.service
            service.resume(self._resumption(session, "", seen=0))
            self._follow(session, shows_texts=True)
        return self._choices(session)

    def _list(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        cwd = params.get("cwd")
        if not cwd:
            return {"sessions": []}
        rows = runs.rows(root_of(Path(str(cwd))))
        return {
            "sessions": [
                {
                    "sessionId": each["run"],
                    "cwd": str(cwd),
                    "title": each["task"].partition("\n")[0],
                    "updatedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(each["at_s"])),
                }
                for each in rows[:MAX_LISTED]
            ]
        }

    def _close(self, params: Mapping[str, Any]) -> None:
        self._cancel(params)
        self._sessions.pop(str(params.get("sessionId")), None)  # its prompt ends on its own thread

    def _cancel(self, params: Mapping[str, Any]) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and session.prompt:
            session.is_cancelled = True
            self._call("agent.stop", session)

    def _set_mode(self, params: Mapping[str, Any]) -> None:
        self._session(params).mode = _known(str(params.get("modeId")), MODES)

    def _set_option(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        session, value = self._session(params), str(params.get("value"))
        if params.get("configId") == "mode":
            session.mode = _known(value, MODES)
        elif params.get("configId") == "model":
            if session.has_begun or session.prompt:
                raise Problem("the model of a session is chosen before its first message")
            session.model = _known(value, self.opened.models.names())
        else:
            raise Problem(f"there is no option {params.get('configId')}")
        return {"configOptions": self._options(session)}

    def _prompt(self, number: Any, params: Mapping[str, Any]) -> None:
        session = self._session(params)
        if session.prompt:
            raise Problem("this session still works on an earlier message")
        reader = Reader(root_of(session.cwd), self._secrets)
        task, context = messages.read(params.get("prompt"), reader)
        if not task.strip():
            raise Problem("the message is empty")
        self._begin(session)
        work = threading.Thread(
            target=self._work, args=(number, session, task, context), name="lcursor-acp-prompt"
        )
        work.daemon = True
        work.start()

    # A prompt. Thread: its own.

    def _work(self, number: Any, session: Session, task: str, context: str) -> None:
        service, path, note = self.opened.service, str(session.cwd), ""
        try:
            policy = cast("Policy", session.mode)
            folder = runs.project_folder(root_of(session.cwd)) / session.key
            if session.has_begun:
                text = f"{task}\n\n{context}" if context else task
                service.resume(self._resumption(session, text, seen=sys.maxsize), policy)
            else:
                folders.make_private(folder)  # a run that cannot start removes it
                start = start_message(session.prompt, task, path, policy, session.model, context)
                service.start(start, folder)
            if session.is_cancelled:  # before there was a run
                self._call("agent.stop", session)
            done = self._follow(session)
            session.has_begun = (folder / run_log.NAME).is_file()
            if done.get("turn"):
                writer = ChangeWriter(
                    self.opened.histories,
                    self._editor,
                    session.key,
                    done,
                    self._files,
                    lambda: session.is_cancelled,
                )
                note = writer.write_all()
        except LcursorError as error:
            done = {"state": "failed", "message": str(error)}
        except Exception:  # noqa: BLE001 - the root of a thread; the editor waits for an answer
            traceback.print_exc()
            done = {"state": "failed", "message": "the agent failed because of a bug in it"}
        text = "\n\n".join(filter(None, (str(done.get("message") or ""), note, session.remark)))
        session.remark = ""
        if text:
            self._update(session.key, "agent_message_chunk", content=_text(text))
        is_cancelled = session.is_cancelled or done.get("state") == "stopped"
        has_budget = done.get("state") != "stuck"
        reason = "end_turn" if has_budget else "max_turn_requests"
        session.prompt = 0
        self._editor.answer(number, {"stopReason": "cancelled" if is_cancelled else reason})

    def _resumption(self, session: Session, text: str, seen: int) -> AgentResume:
        """Return the message that continues a run, or shows it if there is no text."""
        return {
            "id": session.prompt,
            "run": session.key,
            "path": str(session.cwd),
            "continues": bool(text),
            "text": text,
            "seen": seen,
        }

    def _begin(self, session: Session) -> None:
        self._last_prompt += 1
        session.prompt, session.is_cancelled = self._last_prompt, False
        session.messages = queue.SimpleQueue()
        self._by_prompt[session.prompt] = session

    def _follow(self, session: Session, *, shows_texts: bool = False) -> Mapping[str, Any]:
        """Report what the run does until it ends; return its last message.

        Args:
            shows_texts: the session is opened again, and all that it has written is a message.
        """
        key, number, shown = session.key, session.prompt, set[int]()
        writing, problem = _Writing(""), ""
        while True:
            method, params = session.messages.get()
            if method == "agent.delta":
                kind = "agent_message_chunk" if shows_texts else "agent_thought_chunk"
                if words := writing.more(params["text"], is_new=params["is_new"]):
                    self._update(key, kind, content=_text(words))
            elif method == "agent.said" and shows_texts:
                self._update(key, "user_message_chunk", content=_text(params["text"]))
            elif method == "agent.started":
                writing = _Writing(params["dialect"])
            elif method == "agent.step":
                self._show_step(key, number, params, is_new=params["number"] not in shown)
                shown.add(params["number"])
            elif method == "agent.status" and params["context_tokens"]:
                used, size = params["used_tokens"], params["context_tokens"]
                self._update(key, "usage_update", used=used, size=size)
            elif method == "agent.asks":
                self._ask(session, params)
            elif method == "agent.planned":
                self._ask_plan(session, params)
            elif method == "error":
                problem = ". ".join(filter(None, (params["message"], params["hint"])))
            elif method == "agent.done":
                self._by_prompt.pop(number, None)
                if shows_texts:
                    session.prompt = 0
                return {**params, "message": params["message"] or problem}

    def _show_step(self, key: str, prompt: int, step: Mapping[str, Any], *, is_new: bool) -> None:
        path = step["target"].partition(":")[0]
        title = step["target"] if step["kind"] == "command" else step["kind"].title()
        if step["kind"] in ("read", "edit", "search"):
            title = f"{title} {step['target']}"
        text = step["text"] or step["result"]
        fields = {
            "toolCallId": f"{prompt}.{step['number']}",
            "title": title,
            "kind": KINDS[step["kind"]],
            "status": STATES[step["state"]],
            "content": [{"type": "content", "content": _text(text)}] if text else [],
        }
        root = root_of(self._sessions[key].cwd) if key in self._sessions else Path()
        if step["kind"] in ("read", "edit") and (root / path).is_file():
            fields["locations"] = [{"path": str(root / path)}]
        self._update(key, "tool_call" if is_new else "tool_call_update", **fields)

    def _ask(self, session: Session, params: Mapping[str, Any]) -> None:
        call = {
            "toolCallId": f"{session.prompt}.{params['number']}",
            "title": params["command"],
            "kind": "execute",
            "status": "pending",
            "content": [{"type": "content", "content": _text(params["why"])}],
        }
        choice = self._permission(session, call, [ALLOW, ALLOW_ALL, REJECT])
        text = "" if choice else "the user was not asked"
        answer = {"choice": choice or "reject", "text": text}
        self._call("agent.decide", session, ask=params["ask"], **answer)

    def _ask_plan(self, session: Session, params: Mapping[str, Any]) -> None:
        self._update(session.key, "agent_message_chunk", content=_text(params["text"]))
        call = {
            "toolCallId": f"{session.prompt}.plan",
            "title": "Carry out this plan",
            "kind": "switch_mode",
            "status": "pending",
            "content": [{"type": "content", "content": _text(params["text"])}],
        }
        choice = self._permission(session, call, [{**ALLOW, "name": "Carry it out"}, REJECT])
        text = params["text"] if choice == "once" else ""
        self._call("agent.approve_plan", session, text=text)

    def _permission(
        self, session: Session, call: Mapping[str, Any], options: Sequence[Mapping[str, str]]
    ) -> str:
        """Return the id of the option that the user chose; "" for none."""
        return self._editor.permission(session.key, call, options, lambda: session.is_cancelled)

    # Parts of the above.

    def _call(self, method: str, session: Session, **fields: Any) -> None:
        self.opened.service.handlers()[method]({"id": session.prompt, **fields})

    def _update(self, key: str, update_kind: str, **fields: Any) -> None:
        update = {"sessionUpdate": update_kind, **fields}
        self._editor.notify("session/update", {"sessionId": key, "update": update})

    def _session(self, params: Mapping[str, Any]) -> Session:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None:
            raise Problem(f"there is no session {params.get('sessionId')}")
        return session

    def _choices(self, session: Session) -> Mapping[str, Any]:
        modes = [
            {"id": key, "name": name, "description": what} for key, (name, what) in MODES.items()
        ]
        return {
            "modes": {"currentModeId": session.mode, "availableModes": modes},
            "configOptions": self._options(session),
        }

    def _options(self, session: Session) -> Sequence[Mapping[str, Any]]:
        names = dict.fromkeys([session.model, *self.opened.models.names()])
        models = [{"value": name, "name": name} for name in names]
        modes = [
            {"value": key, "name": name, "description": what} for key, (name, what) in MODES.items()
        ]
        return [
            {"id": name, "name": name.title(), "category": name, "type": "select",
             "currentValue": value, "options": options}
            for name, value, options in (
                ("mode", session.mode, modes), ("model", session.model, models)
            )
        ]  # fmt: skip


class _Writing:
    """What the model writes, without the calls that follow it."""

    def __init__(self, dialect: str) -> None:
        self._calls = CALLS.get(dialect, TAGS)
        self._text, self._shown = "", 0

    def more(self, text: str, *, is_new: bool) -> str:
        """Return what can be shown after the next text."""
        if is_new:
            self._text, self._shown = "", 0
        self._text += text
        ends = [at for at in map(self._text.find, self._calls) if at >= 0]
        for size in range(max(map(len, self._calls)) - 1, 0, -1):
            part = self._text[-size:]
            if not ends and any(each.startswith(part) for each in self._calls):
                ends = [len(self._text) - len(part)]  # it may become one
        found = self._text[self._shown : max(min(ends, default=len(self._text)), self._shown)]
        self._shown += len(found)
        return found


def _text(text: str) -> Mapping[str, str]:
    return {"type": "text", "text": text}


def _folder(params: Mapping[str, Any]) -> Path:
    """Return the folder of a session.

    Raises:
        Problem: it is none.
    """
    cwd = Path(str(params.get("cwd") or ""))
    if not cwd.is_absolute() or not cwd.is_dir():
        raise Problem(f"cwd is not the absolute path of a folder: {cwd}")
    return cwd


def _about_servers(params: Mapping[str, Any]) -> str:
    """Return a sentence that names the MCP servers of the editor: none is used; "" without any."""
    found = params.get("mcpServers")
    rows = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    names = ", ".join(str(each.get("name")) for each in rows)
    return f"(MCP servers are not used by lcursor here: {names}.)" if names else ""


def _known(value: str, values: Iterable[str]) -> str:
    if value not in values:
        raise Problem(f"{value} is not one of {', '.join(values)}")
    return value
