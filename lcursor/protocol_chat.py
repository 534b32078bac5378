"""The messages of the chat slot, a part of `protocol.py`, which lists and checks them.

Vocabulary: imports nothing of ours. Every question has an `id` and is answered with it; what a turn
says while it runs carries the id of its `chat.send`. A chat is named by its key in the archive; a
message by its number in the chat, from 1; 0 is before the first.
"""

from __future__ import annotations

from typing import Literal, TypedDict

ChatRole = Literal["user", "assistant", "summary"]
ChatPhase = Literal["server", "context", "summary", "reading", "writing"]
"""What a turn waits for: a server that starts, what is attached, a summary, the prompt, the answer.
"""
ChatEnd = Literal["stop", "length", "stopped", "failed"]
"""The model ended; it may write no more; the user stopped it; it broke off."""
AttachmentKind = Literal[
    "buffer", "selection", "diagnostics", "quickfix", "terminal", "file", "dir", "symbol",
    "diff", "commit", "codebase", "rules", "text", "screen",
]  # fmt: skip


class ChatAttachment(TypedDict):
    """What only the editor can read, and goes into a prompt."""

    kind: AttachmentKind
    name: str  # as it is shown: a path relative to the project, or what it is
    path: str  # absolute; empty for what is in no file
    first_row: int
    text: str
    is_offered: bool  # it is in where a mention asks for it; else it was attached on purpose


class ChatItem(TypedDict):
    """One line of the bill: something that is in the prompt, or would be."""

    key: str  # names it for `dropped`
    kind: str  # of an attachment; or `system`, `history`, `question`
    name: str
    tokens: int
    is_exact: bool  # counted by the server's own tokenizer; else an estimate
    note: str  # why it is in, or why it is not: a secret, no room, no such file
    is_left_out: bool
    path: str  # absolute; where one can jump to
    first_row: int


class ChatMessage(TypedDict):
    """One message of the branch that is shown."""

    number: int
    role: ChatRole
    text: str
    reasoning: str
    branch: int  # of how many that were said in its place this one is, from 1
    branches: int
    is_partial: bool  # it was stopped or broke off
    model: str  # that gave the answer; empty for what is none, and where nobody knows
    why: str  # it broke off; empty where it did not, or the user stopped it
    items: list[ChatItem]  # what was attached to it


class ChatOpen(TypedDict):
    """Show a chat, or begin one."""

    id: int
    chat: str  # empty: a new one; `last`: the newest of this project
    path: str  # absolute: of a file or folder of the project


class ChatOpened(TypedDict):
    """A chat and the branch of it that is shown; answers all that changes what is shown."""

    id: int
    chat: str
    title: str
    root: str  # of the project
    model: str  # by its name in the settings
    models: list[str]
    messages: list[ChatMessage]
    context_tokens: int  # of the model; 0 where nobody knows yet
    used_tokens: int  # of the last turn


class ChatSend(TypedDict):
    """Say something, and have it answered."""

    id: int
    chat: str
    after: int  # the message that it follows; another than the last begins a branch
    text: str  # with its mentions; empty: answer the last question again
    path: str  # absolute: of the file one is in
    attachments: list[ChatAttachment]
    dropped: list[str]  # keys of items that are left out
    model: str  # empty: the chat's
    again: int  # a question in whose place it is said: what was attached to that is again; 0: none


class ChatBill(TypedDict):
    """What would be sent, and what it costs; asks like `chat.send`, and sends nothing."""

    id: int
    chat: str
    after: int
    text: str
    path: str
    attachments: list[ChatAttachment]
    dropped: list[str]
    model: str
    again: int


class ChatBilled(TypedDict):
    """The bill; answers `chat.bill`."""

    id: int
    chat: str
    items: list[ChatItem]
    total_tokens: int
    limit_tokens: int  # that the prompt may have; 0 where nobody knows yet


class ChatStarted(TypedDict):
    """A turn begins: its messages have their numbers."""

    id: int
    chat: str
    question: int  # number of the user's message
    answer: int
    items: list[ChatItem]
    model: str  # that is asked; empty where it did not come to that


class ChatProgress(TypedDict):
    """What a turn waits for."""

    id: int
    phase: ChatPhase
    detail: str
    done: int  # tokens of the prompt while reading; else 0
    total: int
    cached: int  # of `done`, found in the server's cache
    seconds_left: float  # an estimate; -1 where there is none


class ChatDelta(TypedDict):
    """More of the answer."""

    id: int
    text: str
    reasoning: str


class ChatDone(TypedDict):
    """A turn ended; what was said until then is kept, however it ended."""

    id: int
    chat: str
    reason: ChatEnd
    title: str  # it may have got one
    prompt_tokens: int
    cached_tokens: int
    answer_tokens: int
    prompt_ms: float
    answer_ms: float
    first_ms: float  # from the request to the first of the answer
    context_tokens: int
    is_exact: bool  # the server counted; else we did


class ChatSummed(TypedDict):
    """Earlier messages were summarized to make room; `chat.expand` takes that back."""

    id: int
    chat: str
    number: int  # of the summary's message
    last: int  # number of the last message that it stands for
    messages: int  # that it stands for
    tokens_before: int
    tokens_after: int
    text: str


class ChatNamed(TypedDict):
    """A question about one chat."""

    id: int
    chat: str


class ChatAt(TypedDict):
    """A question about one message of a chat."""

    id: int
    chat: str
    number: int


class ChatAmend(TypedDict):
    """Say what an answer shall have been: it is a branch, and the old one is kept."""

    id: int
    chat: str
    number: int  # of the answer
    text: str


class ChatTurn(TypedDict):
    """Show the branch before or after the one that is shown at a message."""

    id: int
    chat: str
    number: int
    step: int


class ChatRename(TypedDict):
    """Give a chat another title."""

    id: int
    chat: str
    title: str


class ChatUse(TypedDict):
    """Talk to another model from now on."""

    id: int
    chat: str
    model: str


class ChatStop(TypedDict):
    """Stop turn `id` at once; its `chat.done` follows."""

    id: int


class ChatList(TypedDict):
    """Ask for the chats there are."""

    id: int
    path: str  # absolute, of the project; empty for all projects


class ChatRow(TypedDict):
    """One chat of the archive."""

    chat: str
    title: str
    root: str
    model: str
    messages: int
    updated_s: float  # since 1970
    preview: str  # the beginning of its first question


class ChatListed(TypedDict):
    """The chats there are, the newest first; answers `chat.list`."""

    id: int
    chats: list[ChatRow]
    note: str  # what could not be read; empty for nothing


class ChatComplete(TypedDict):
    """Ask what could stand after `@` or `/`."""

    id: int
    path: str
    word: str  # from the sign on, as far as it is typed


class ChatWord(TypedDict):
    """One completion of a mention or a command."""

    word: str
    kind: str  # `file`, `symbol`, `command`, …
    info: str


class ChatCompleted(TypedDict):
    """What could stand there, best first; answers `chat.complete`."""

    id: int
    words: list[ChatWord]


class ServerAsk(TypedDict):
    """Ask about the local server of the chat slot, or have something done to it."""

    id: int
    do: Literal["status", "start", "stop", "restart", "log"]


class ServerTold(TypedDict):
    """What the server is; answers `server.ask`."""

    id: int
    state: Literal["none", "starting", "running", "sleeping", "failed", "foreign"]
    lines: list[str]  # for people
    url: str
    pid: int
    model: str
    log: str  # path of its log; empty where there is none


TO_PYTHON: dict[str, type] = {
    "chat.open": ChatOpen,
    "chat.send": ChatSend,
    "chat.bill": ChatBill,
    "chat.stop": ChatStop,
    "chat.list": ChatList,
    "chat.rename": ChatRename,
    "chat.delete": ChatNamed,
    "chat.branch": ChatTurn,
    "chat.amend": ChatAmend,
    "chat.use": ChatUse,
    "chat.compact": ChatNamed,
    "chat.expand": ChatAt,
    "chat.complete": ChatComplete,
    "server.ask": ServerAsk,
}
TO_LUA: dict[str, type] = {
    "chat.opened": ChatOpened,
    "chat.billed": ChatBilled,
    "chat.started": ChatStarted,
    "chat.progress": ChatProgress,
    "chat.delta": ChatDelta,
    "chat.done": ChatDone,
    "chat.summed": ChatSummed,
    "chat.listed": ChatListed,
    "chat.completed": ChatCompleted,
    "server.told": ServerTold,
}
