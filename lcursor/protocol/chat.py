"""The messages of chats and of the local server.

Each request has an `id`; all its answers repeat it. A chat is named by its key, a message by its
number in the chat, from 1; 0 is before the first.
"""

from __future__ import annotations

from typing import Literal, TypedDict

ChatRole = Literal["user", "assistant", "summary", "result"]
"""`result`: of a call of a server's tool, in the place of a question."""
ChatPhase = Literal["server", "context", "tool", "summary", "queue", "reading", "writing"]
"""The step that a turn waits for: the start of a server, the context, a call of a tool, a summary,
other requests to the local server, reading the prompt, the answer."""
ChatEnd = Literal["stop", "length", "stopped", "failed"]
"""The model ended its answer; the answer reached its limit; the user stopped it; an error."""
ChatCallState = Literal["", "asks", "runs"]
"""Of the call of a tool with which an answer ends: there is none; it waits for the user's approval;
it needs none, so that the editor sends it at once."""
ChatCallChoice = Literal["", "once", "chat", "reject"]
"""No approval is needed; run it; also run this tool without approval in this chat from now on."""
AttachmentKind = Literal[
    "buffer", "selection", "diagnostics", "quickfix", "terminal", "file", "dir", "symbol",
    "diff", "commit", "codebase", "rules", "text", "screen", "mcp",
]  # fmt: skip


class ChatAttachment(TypedDict):
    """A part of a prompt that only the editor can read."""

    kind: AttachmentKind
    name: str  # for display: a path relative to the project, or a description
    path: str  # absolute; empty if it is not from a file
    first_row: int
    text: str
    is_offered: bool  # used if a mention asks for it; else the user attached it


class ChatItem(TypedDict):
    """A part of a prompt, or a requested item that was left out."""

    key: str  # used in `dropped`
    kind: str  # of an attachment; or `system`, `history`, `question`
    name: str
    tokens: int
    is_exact: bool  # counted by the server's tokenizer; else an estimate
    note: str  # why it is included or left out
    is_left_out: bool
    path: str  # absolute, to jump to
    first_row: int


class ChatMessage(TypedDict):
    """A message of the branch that is shown."""

    number: int
    role: ChatRole
    text: str
    reasoning: str
    branch: int  # its number among the messages with the same parent, from 1
    branches: int
    is_partial: bool  # stopped or failed
    model: str  # that wrote the answer; empty for other messages, or if unknown
    why: str  # it failed or was cut off; empty if neither, or if the user stopped it
    items: list[ChatItem]  # its context
    call: ChatCallState


class ChatNamed(TypedDict):
    """A request about a chat."""

    id: int
    chat: str


class ChatAt(ChatNamed):
    """A request about a message of a chat."""

    number: int


class ChatOpen(ChatNamed):
    """Show a chat, or create one."""

    # chat: empty for a new one; `last` for the newest of this project
    path: str  # absolute: of a file or folder of the project


class ChatOpened(ChatNamed):
    """A chat and its current branch; the answer to each request that changes the display."""

    title: str
    root: str  # of the project
    model: str  # its name in the settings
    models: list[str]
    messages: list[ChatMessage]
    context_tokens: int  # of the model; 0 if unknown
    used_tokens: int  # of the last turn


class ChatSend(ChatNamed):
    """Ask a question."""

    after: int  # the message that it follows; a branch begins unless that is the last one
    text: str  # with its mentions; empty to answer the last question again
    path: str  # absolute: of the current file
    attachments: list[ChatAttachment]
    dropped: list[str]  # keys of items to leave out
    model: str  # empty for the chat's
    again: int  # the question that it replaces, whose attachments are sent again; 0 for none
    call: str  # run this call of the answer `after`: its block in Markdown; empty for a question
    choice: ChatCallChoice  # about `call`; if it is rejected, `text` is the reason


class ChatPreview(ChatSend):
    """Preview what `chat.send` would send, and its tokens."""


class ChatPreviewed(ChatNamed):
    """The prompt that would be sent; the answer to `chat.preview`."""

    items: list[ChatItem]
    total_tokens: int
    limit_tokens: int  # of the prompt; 0 if unknown


class ChatStarted(ChatNamed):
    """A turn has begun, and its messages have numbers."""

    question: int
    answer: int
    items: list[ChatItem]
    model: str  # empty if the turn ended before one was chosen
    result: str  # of the call that was run; empty for a question


class ChatProgress(TypedDict):
    """The step that a turn waits for."""

    id: int
    phase: ChatPhase
    detail: str
    done: int  # tokens of the prompt while reading; else 0
    total: int
    cached: int  # of `done`, in the server's cache
    seconds_left: float  # an estimate; -1 if unknown


class ChatDelta(TypedDict):
    """The next piece of the answer."""

    id: int
    text: str
    reasoning: str


class ChatDone(ChatNamed):
    """A turn has ended; its text remains."""

    reason: ChatEnd
    title: str
    call: ChatCallState
    prompt_tokens: int
    cached_tokens: int
    answer_tokens: int
    prompt_ms: float
    answer_ms: float
    first_ms: float  # from the request to the first piece of the answer
    context_tokens: int
    is_exact: bool  # counted by the server; else an estimate


class ChatSummed(ChatAt):
    """Earlier messages were summarized; `chat.expand` undoes that."""

    # number: of the summary
    last: int  # number of the last message that it replaces
    messages: int  # how many it replaces
    tokens_before: int
    tokens_after: int
    text: str


class ChatAmend(ChatAt):
    """Replace an answer by a branch with another text."""

    text: str


class ChatTurn(ChatAt):
    """Show another branch at a message."""

    step: int  # how many branches further


class ChatRename(ChatNamed):
    """Change the title of a chat."""

    title: str


class ChatUse(ChatNamed):
    """Change the model of a chat."""

    model: str


class ChatStop(TypedDict):
    """Stop turn `id`; its `chat.done` follows."""

    id: int


class ChatList(TypedDict):
    """List the chats."""

    id: int
    path: str  # absolute, of the project; empty for all projects


class ChatRow(TypedDict):
    """A chat in a list."""

    chat: str
    title: str
    root: str
    model: str
    messages: int
    updated_s: float  # since 1970
    preview: str  # the beginning of its first question


class ChatListed(TypedDict):
    """The chats, newest first; the answer to `chat.list`."""

    id: int
    chats: list[ChatRow]
    note: str  # files that could not be read; may be empty


class ChatComplete(TypedDict):
    """Complete a mention or a command."""

    id: int
    path: str
    word: str  # the typed part, from `@` or `/` on


class ChatWord(TypedDict):
    """A possible mention or command."""

    word: str
    kind: str  # `file`, `symbol`, `command`, …
    info: str


class ChatCompleted(TypedDict):
    """The possible words, best first; the answer to `chat.complete`."""

    id: int
    words: list[ChatWord]


class ServerAsk(TypedDict):
    """Show or control the local chat server."""

    id: int
    do: Literal["status", "start", "stop", "restart", "log"]


class ServerStatus(TypedDict):
    """The state of the server; the answer to `server.ask`."""

    id: int
    state: Literal["none", "starting", "running", "sleeping", "failed", "foreign"]
    lines: list[str]  # a description
    url: str
    pid: int
    model: str
    log: str  # path of its log; empty if there is none


TO_PYTHON: dict[str, type] = {
    "chat.open": ChatOpen,
    "chat.send": ChatSend,
    "chat.preview": ChatPreview,
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
    "chat.previewed": ChatPreviewed,
    "chat.started": ChatStarted,
    "chat.progress": ChatProgress,
    "chat.delta": ChatDelta,
    "chat.done": ChatDone,
    "chat.summed": ChatSummed,
    "chat.listed": ChatListed,
    "chat.completed": ChatCompleted,
    "server.status": ServerStatus,
}
