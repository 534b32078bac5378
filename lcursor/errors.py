"""The errors that lcursor raises, each with a code, a severity and a hint for the user.

A module that imports a library translates its exceptions into these. `code` is sent to
Neovim; `lua/lcursor/host/protocol.lua` has all codes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

Level = Literal["silent", "info", "warn", "error"]


class LcursorError(Exception):
    """An unexpected error; the log has more.

    A subclass inherits the level of its base class unless it sets one.

    Args:
        message: one sentence without a final full stop, for the user.
        hint: the command or step that helps; "" if there is none.
    """

    code: ClassVar[str] = "internal"
    """The class name in snake case."""
    level: ClassVar[Level] = "error"

    def __init_subclass__(cls, level: Level | None = None) -> None:
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.level = level or cls.level

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class ConfigInvalid(LcursorError, level="warn"):
    """A setting has a wrong type, value or name."""


class DependencyMissing(LcursorError):
    """A Python package cannot be imported."""


class NeovimMissing(LcursorError):
    """No recent enough Neovim was found."""


class InstallFailed(LcursorError):
    """The Python environment could not be created."""


class HostDied(LcursorError, level="warn"):
    """The host ended unexpectedly and is restarted."""


class HostFailed(LcursorError):
    """The host ended too often and is not restarted."""


class ProtocolMismatch(LcursorError):
    """The plugin and the host have different versions."""


class MessageInvalid(LcursorError):
    """A message lacks a field or has a wrong type."""


class SandboxMissing(LcursorError):
    """No sandbox works here, so code of a model is not run."""


class SandboxFailed(LcursorError):
    """A command could not be started in the sandbox."""


class JournalFailed(LcursorError, level="warn"):
    """The statistics cannot be read or written."""


class IndexFailed(LcursorError):
    """A request to the index failed."""


class IndexRejected(IndexFailed, level="warn"):
    """Indexing this folder needs a confirmation."""


class IndexAway(IndexFailed, level="warn"):
    """The index worker does not answer."""


class IndexFull(IndexFailed):
    """The disk is full; the index keeps what it has."""


class ChatFailed(LcursorError):
    """A chat cannot be read or changed."""


class ChatMissing(ChatFailed, level="warn"):
    """There is no such chat or message."""


class ChatBusy(ChatFailed, level="warn"):
    """An answer is being written in the chat."""


class CommandUnknown(ChatFailed, level="warn"):
    """A question begins with an unknown command."""


class ChatDamaged(ChatFailed, level="warn"):
    """A part of a stored chat cannot be read."""


class ChatUnsaved(ChatFailed, level="warn"):
    """A chat cannot be stored; it is kept in memory."""


class EditFailed(LcursorError):
    """An edit could not be made, stored or undone."""


class EditMissing(EditFailed, level="warn"):
    """There is no such edit."""


class EditRejected(EditFailed, level="warn"):
    """This file is never edited, for example a secret."""


class EditOutside(EditRejected, level="warn"):
    """A file outside the project needs a confirmation."""


class EditStale(EditFailed, level="warn"):
    """A file has changed since the edit was made."""


class EditUnsaved(EditFailed):
    """Files or their checkpoint cannot be written."""


class ReplyUnusable(EditFailed, level="warn"):
    """The model's reply cannot be applied.

    Args:
        reason: `empty`, `prose`, `cut`, `fences`, `language`, `form` or `lazy`.
        message: the problem, for the user and for the model's next attempt.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, "Try again, and describe the problem in the instruction")
        self.reason = reason
        self.reply = ""
        """The reply, if known."""
        self.usage: object = None
        """Its token counts, an `llm.records.Usage`."""


class CheckFailed(EditFailed, level="warn"):
    """A formatter, linter or test fails or cannot run."""


class NothingStaged(EditFailed, level="info"):
    """There are no staged changes."""


class AgentFailed(LcursorError):
    """A run of an agent cannot be started, stored or read."""


class AgentMissing(AgentFailed, level="warn"):
    """There is no such run."""


class AgentBusy(AgentFailed, level="warn"):
    """Another process executes this run."""


class McpFailed(LcursorError, level="warn"):
    """A server of the Model Context Protocol cannot be used, or did not do what was asked."""


class AgentEnded(AgentFailed):
    """The program of a foreign agent has ended, or does not answer."""


class AgentRequestFailed(AgentFailed):
    """A foreign agent answered a request with an error."""

    def __init__(self, message: str, hint: str = "", number: int = 0) -> None:
        super().__init__(message, hint)
        self.number = number
        """The error's number in JSON-RPC."""


class KeyMissing(LcursorError):
    """The configured API key cannot be found."""


class KeyExposed(LcursorError, level="warn"):
    """An API key is sent unencrypted to another machine."""


class ContextFull(LcursorError, level="warn"):
    """A prompt is longer than the model's context.

    `prompt_tokens` and `context_tokens` are 0 if the server does not report them.
    """

    prompt_tokens = 0
    context_tokens = 0


class ServerError(LcursorError):
    """A model server failed."""

    status = 0
    """HTTP status of the response; 0 for other failures."""
    detail: Mapping[str, object] = MappingProxyType({})
    """Other fields of the error; see `http.sse.error_detail`."""


class ServerUnreachable(ServerError, level="warn"):
    """Nothing answers at the server's address."""


class ServerInsecure(ServerError):
    """The server's certificate is not trusted."""


class ServerSlow(ServerError, level="warn"):
    """The server did not answer in time."""


class ServerDenied(ServerError):
    """The server needs an API key, or another one."""


class ServerModelMissing(ServerError):
    """The server has no such model."""


class ServerMissing(ServerError):
    """No program on this machine can serve a chat model."""


class ServerEnded(ServerError):
    """The local server ended, or could not be started."""


class ServerOccupied(ServerError, level="warn"):
    """The local server runs another model for an editor."""


class ServerFailed(ServerError):
    """The server answers with an error."""


class ServerBusy(ServerFailed, level="warn"):
    """The server is busy or limits requests.

    `retry_s` is its suggested delay before a retry; 0 if it suggests none.
    """

    retry_s = 0.0


class ServerGarbled(ServerError):
    """The response is not that of a model server."""


class ModelError(LcursorError):
    """A model's file cannot be used."""


class ModelUnknown(ModelError):
    """No model of that name is in the manifest."""


class ModelMissing(ModelError):
    """The model's file is not on this machine."""


class ModelCorrupt(ModelError):
    """The file of a model is damaged."""


class ModelUnsuitable(ModelError):
    """The model cannot do this, for example complete."""


class TokenizerOdd(ModelError, level="warn"):
    """The tokenizer does not reproduce its input."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the tokenizer of {message}: the start of suggestions may be wrong",
            "Choose another completion.model; see: python -m lcursor models list",
        )


class DownloadFailed(ModelError):
    """The file cannot be downloaded."""


class DiskFull(ModelError):
    """The file does not fit on the disk."""


class EngineError(LcursorError):
    """The in-process engine failed."""


class EngineFailed(EngineError):
    """llama.cpp failed."""


class OutOfMemory(EngineError):
    """The model or its cache does not fit into memory."""


class Cancelled(EngineError, level="silent"):
    """Stopped on request. Never shown."""


def tree(root: type[LcursorError] = LcursorError) -> list[type[LcursorError]]:
    """Return an error class and all its subclasses, depth first."""
    return [root, *(leaf for child in root.__subclasses__() for leaf in tree(child))]


def levels() -> dict[str, Level]:
    """Return the severity of every code, in the order of `tree`."""
    return {error.code: error.level for error in tree()}
