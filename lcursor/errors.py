"""The errors that lcursor raises, with code, severity and a hint what to do.

An exception of a library becomes one of these in the one module that imports the library. `code` is
sent to Neovim; `lua/lcursor/protocol.lua` has all codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

Level = Literal["silent", "info", "warn", "error"]


class LcursorError(Exception):
    """Something failed that nobody foresaw; the log has more.

    The base of all: what failed, and in `hint` what to do about it.

    Args:
        message: one sentence without a final stop, for the user.
        hint: the command or the step that helps; "" if there is none.
    """

    code: ClassVar[str] = "internal"
    level: ClassVar[Level] = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class ConfigInvalid(LcursorError):
    """A setting has a wrong type, value or name."""

    code = "config_invalid"
    level = "warn"


class DependencyMissing(LcursorError):
    """A Python package cannot be imported."""

    code = "dependency_missing"


class NeovimMissing(LcursorError):
    """A command needs a Neovim and finds none that is new enough."""

    code = "neovim_missing"


class InstallFailed(LcursorError):
    """The Python environment could not be made."""

    code = "install_failed"


class HostDied(LcursorError):
    """The Python process ended unexpectedly and is started again."""

    code = "host_died"
    level = "warn"


class HostFailed(LcursorError):
    """The Python process ended too often and stays down."""

    code = "host_failed"


class ProtocolMismatch(LcursorError):
    """The Lua and the Python half are of different versions."""

    code = "protocol_mismatch"


class MessageInvalid(LcursorError):
    """A message on the wire lacks a field or has a wrong type."""

    code = "message_invalid"


class JournalFailed(LcursorError):
    """The record of what was accepted cannot be read or written; all else works."""

    code = "journal_failed"
    level = "warn"


class IndexFailed(LcursorError):
    """The index of a project cannot do what was asked."""

    code = "index_failed"


class IndexRefused(IndexFailed):
    """The index was not told to begin, or not clearly enough for what it would read."""

    code = "index_refused"
    level = "warn"


class IndexAway(IndexFailed):
    """The worker of the index does not answer."""

    code = "index_away"
    level = "warn"


class IndexFull(IndexFailed):
    """The disk has no room for the index; what is in it stays whole."""

    code = "index_full"


class ChatFailed(LcursorError):
    """A chat cannot be read, or not be changed as was asked."""

    code = "chat_failed"


class ChatMissing(ChatFailed):
    """There is no such chat, or no such message in it."""

    code = "chat_missing"
    level = "warn"


class ChatBusy(ChatFailed):
    """An answer is being written in the chat."""

    code = "chat_busy"
    level = "warn"


class CommandUnknown(ChatFailed):
    """A question begins with what is nearly a command; it is not sent."""

    code = "command_unknown"
    level = "warn"


class ChatDamaged(ChatFailed):
    """A part of a chat's file cannot be read; the rest is there."""

    code = "chat_damaged"
    level = "warn"


class ChatUnsaved(ChatFailed):
    """The file of a chat cannot be written; the chat goes on in memory."""

    code = "chat_unsaved"
    level = "warn"


class EditFailed(LcursorError):
    """An edit could not be made, kept or taken back."""

    code = "edit_failed"


class EditMissing(EditFailed):
    """There is no such edit, or no such turn."""

    code = "edit_missing"
    level = "warn"


class EditRefused(EditFailed):
    """It would touch what edits must not touch: a secret, or what is outside of the project."""

    code = "edit_refused"
    level = "warn"


class EditOutside(EditRefused):
    """A file is outside of the project: the user is asked first."""

    code = "edit_outside"
    level = "warn"


class EditStale(EditFailed):
    """A file is not, or not any more, what the edit was made for; it was left as it is."""

    code = "edit_stale"
    level = "warn"


class EditUnsaved(EditFailed):
    """Files cannot be written, or the record of what is done to them; all are as before."""

    code = "edit_unsaved"


class ReplyUnusable(EditFailed):
    """What the model wrote is no change that could be made; nothing was touched.

    Args:
        reason: `empty`, `prose`, `cut`, `fences`, `language`, `form` or `lazy`.
        message: what is wrong with it, for the user and for the model that tries again.
    """

    code = "reply_unusable"
    level = "warn"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, "Try again, with a remark on what is wrong")
        self.reason = reason
        self.reply = ""
        """As it came, where who read it says so."""
        self.usage: object = None
        """What it cost; an `llm.records.Usage`."""


class CheckFailed(EditFailed):
    """A formatter, linter or test of the settings cannot be run, or says no."""

    code = "check_failed"
    level = "warn"


class NothingStaged(EditFailed):
    """There is nothing to write a commit message about."""

    code = "nothing_staged"
    level = "info"


class KeyMissing(LcursorError):
    """No key for a server is found where the configuration says it is."""

    code = "key_missing"


class KeyExposed(LcursorError):
    """A key is sent over plain HTTP to another machine: whoever is on the way can read it."""

    code = "key_exposed"
    level = "warn"


class ContextFull(LcursorError):
    """A prompt is longer than the model can read.

    `prompt_tokens` and `context_tokens` say by how much, 0 where nobody does.
    """

    code = "context_full"
    level = "warn"
    prompt_tokens = 0
    context_tokens = 0


class ServerError(LcursorError):
    """Something is wrong with a server of models."""

    code = "server_error"
    status = 0
    """That it answered with, where that was the trouble."""
    detail: Mapping[str, object] = MappingProxyType({})
    """What it said besides its sentence; see `http.sse.error_detail`."""


class ServerUnreachable(ServerError):
    """Nothing answers at the server's address, or it closes the connection without an answer."""

    code = "server_unreachable"
    level = "warn"


class ServerInsecure(ServerError):
    """The server's certificate is not to be trusted."""

    code = "server_insecure"


class ServerSlow(ServerError):
    """The server did not answer in time."""

    code = "server_slow"
    level = "warn"


class ServerDenied(ServerError):
    """The server wants a key, or another one."""

    code = "server_denied"


class ServerModelMissing(ServerError):
    """The server has no such model."""

    code = "server_model_missing"


class ServerMissing(ServerError):
    """There is no program on this machine that could serve a model."""

    code = "server_missing"


class ServerEnded(ServerError):
    """The server that was started on this machine ended, or did not begin."""

    code = "server_ended"


class ServerOccupied(ServerError):
    """The server of this machine serves another model to somebody else."""

    code = "server_occupied"
    level = "warn"


class ServerFailed(ServerError):
    """The server answers with an error."""

    code = "server_failed"


class ServerBusy(ServerFailed):
    """The server has too much to do, or was asked too often.

    `retry_s` is when it wants to be asked again, 0 where it does not say.
    """

    code = "server_busy"
    level = "warn"
    retry_s = 0.0


class ServerGarbled(ServerError):
    """The server's answer is not what such a server sends."""

    code = "server_garbled"


class ModelError(LcursorError):
    """Something is wrong with a model's file."""

    code = "model_error"


class ModelUnknown(ModelError):
    """No model of that name is in the manifest."""

    code = "model_unknown"


class ModelMissing(ModelError):
    """The model's file is not on this machine."""

    code = "model_missing"


class ModelCorrupt(ModelError):
    """The file is truncated, has the wrong digest or is no GGUF."""

    code = "model_corrupt"


class ModelUnsuitable(ModelError):
    """The model cannot do what the slot asks, for example fill in the middle."""

    code = "model_unsuitable"


class TokenizerOdd(ModelError):
    """The model's tokens, read back, are not the text that was read: nothing is healed."""

    code = "tokenizer_odd"
    level = "warn"

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the tokenizer of {message}: suggestions may begin amiss",
            "Choose another completion.model; see: python -m lcursor models list",
        )


class DownloadFailed(ModelError):
    """No source could deliver the file."""

    code = "download_failed"


class DiskFull(ModelError):
    """The file does not fit on the disk."""

    code = "disk_full"


class EngineError(LcursorError):
    """The in-process engine could not do its work."""

    code = "engine_error"


class EngineFailed(EngineError):
    """llama.cpp refused or broke."""

    code = "engine_failed"


class OutOfMemory(EngineError):
    """The model or its cache does not fit into memory."""

    code = "out_of_memory"


class Cancelled(EngineError):
    """Someone asked to stop. Never shown."""

    code = "cancelled"
    level = "silent"


def tree(root: type[LcursorError] = LcursorError) -> list[type[LcursorError]]:
    """Return an error class and all its subclasses, depth first."""
    return [root, *(leaf for child in root.__subclasses__() for leaf in tree(child))]


def levels() -> dict[str, Level]:
    """Return the severity of every code, in the order of `tree`."""
    return {error.code: error.level for error in tree()}
