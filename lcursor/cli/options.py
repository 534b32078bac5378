"""Options that several commands have, and the settings that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lcursor.config import ChatConfig

Model = Annotated[str, typer.Option(help="A name of `models list`, or the path of a GGUF file.")]
Where = Annotated[
    Path | None,
    typer.Option(help="A file or folder of the project; default: the current folder."),
]
Test = Annotated[str, typer.Option(metavar="COMMAND", help="Tests that must pass at the end.")]
Lint = Annotated[str, typer.Option(metavar="COMMAND", help="Linter; {path} is the changed file.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(metavar="COMMAND", help="Runs without approval. Repeatable."),
]
Readable = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="A folder or file that commands may read. Repeatable."),
]
Url = Annotated[
    str, typer.Option(help="A server to ask instead of the local one.", show_default=False)
]
KeyEnv = Annotated[str, typer.Option(help="Environment variable with the API key of that server.")]
Secret = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Never read these files. Repeatable."),
]


def chat_settings(model: str, url: str, key_env: str) -> ChatConfig:
    """Return the settings of the model that a command asks."""
    from lcursor.config import ChatConfig, ModelConfig

    if not url:
        return ChatConfig(model=model)
    server = ModelConfig(name="server", url=url, model=model, key_env=key_env)
    return ChatConfig(model="server", models=(server,), server="off")


def absolute(paths: Sequence[Path] | None) -> tuple[str, ...]:
    """Return the paths of an option as settings have them."""
    return tuple(str(each.expanduser().absolute()) for each in paths or ())
