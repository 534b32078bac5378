"""The chat models by their names in the settings.

Starts and queries no server: a name is a `ServedModel` with its key, or means the local server; see
`server.LocalServer`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from lcursor.catalog import manifest, store
from lcursor.config import ChatConfig
from lcursor.errors import ConfigInvalid, ModelMissing, ModelUnknown
from lcursor.http import endpoint
from lcursor.llm import providers
from lcursor.llm.records import ServedModel

LOCAL = "local"
"""Name of the local server's model if the settings name none."""
MAX_TALK_WORDS = 10
TALK = re.compile(
    r"(hi|hello|hey|thanks?|thank you|ok(ay)?|good (morning|evening|night)|bye|great|nice|cool)\b",
    re.I,
)


def targets(config: ChatConfig) -> list[str]:
    """Return the names of all models, the default first."""
    names = [model.name for model in config.models]
    if config.server != "off":
        names.insert(0, local(config))
    first = config.model or LOCAL
    return sorted(names, key=lambda name: name != first)


def default(config: ChatConfig) -> str:
    """Return the name of the model of a new chat; never one on a server that is not named for it.

    Raises:
        ConfigInvalid: there is none.
    """
    if config.model and (is_remote(config, config.model) or config.server != "off"):
        return config.model
    if config.server != "off":
        return LOCAL
    if config.model:
        raise _unknown(config, config.model)
    names = ", ".join(model.name for model in config.models)
    choice = f"chat.model to one of {names}" if names else "chat.model to a name in models"
    raise ConfigInvalid(
        "there is no chat model: chat.server is off, and chat.model is empty",
        f'Set {choice}, or chat.server to "auto"',
    )


def local(config: ChatConfig) -> str:
    """Return the name of the local server's model."""
    return config.model if config.model and not is_remote(config, config.model) else LOCAL


def is_remote(config: ChatConfig, name: str) -> bool:
    """Return whether a name is in `models`, not a model of the local server."""
    return any(model.name == name for model in config.models)


def check(config: ChatConfig, name: str, running: str = "") -> None:
    """Check that a name is in `models`, or a model for the local server.

    The file need not exist: the error of the first question has the download command. The `running`
    model of the local server may have any name.

    Raises:
        ModelUnknown: there is none; the nearest are suggested.
        ModelMissing: it is a path, and there is no such file.
        ModelUnsuitable: it is not a chat model.
    """
    has_local = config.server != "off"
    if is_remote(config, name) or (has_local and name in {LOCAL, local(config), running}):
        return
    known = [model.name for model in config.models]
    if has_local:
        known += [LOCAL, *(model.name for model in manifest.load() if "chat" in model.slots)]
        is_listed = any(model.name == name.lower() for model in manifest.load())
        if is_listed or "/" in name or name.endswith(".gguf"):
            try:
                store.resolve(name, "chat")
            except ModelMissing:
                if not is_listed:
                    raise
            return
    raise ModelUnknown(f"there is no model called {name!r}", _nearest(name, known))


def _nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint with similar names, or else all names."""
    folded = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), folded, n=3)
    if near:
        return f"Did you mean {' or '.join(folded[each] for each in near)}?"
    return f"There are {', '.join(known)}" if known else "The table models is empty"


def target(config: ChatConfig, name: str) -> ServedModel:
    """Return the target of a model of `models`, with its key.

    Raises:
        ConfigInvalid: there is no such name, or its address is invalid.
        KeyMissing: the configured source of the key has none.

    Cost: the user's command for the key, if any: up to 20 s.
    """
    found = next((model for model in config.models if model.name == name), None)
    if found is None:
        raise _unknown(config, name)
    setting = found.setting
    if not found.url:
        raise ConfigInvalid(
            f"{setting}url: there is no address", 'Write it as "http://127.0.0.1:8012"'
        )
    return ServedModel(
        name,
        endpoint.check_url(found.url, f"{setting}url"),
        found.model,
        providers.api_name(found.api, setting),
        endpoint.read_key(found.key_env, found.key_command, setting),
        max(found.context_tokens, 0),
        setting,
        is_hosted=bool(found.provider),
    )


def is_talk(question: str) -> bool:
    """Return whether a question is small talk, which is not about code."""
    text = question.strip()
    return bool(TALK.match(text)) and len(text.split()) <= MAX_TALK_WORDS


def is_near(config: ChatConfig, name: str) -> bool:
    """Return whether a model runs on this machine."""
    found = next((model for model in config.models if model.name == name), None)
    return found is None or endpoint.is_local(found.url)


def _unknown(config: ChatConfig, name: str) -> ConfigInvalid:
    names = ", ".join(model.name for model in config.models)
    has = f"there are {names}" if names else "it is empty"
    return ConfigInvalid(f"the table models has no {name!r}: {has}", "Choose one of these names")
