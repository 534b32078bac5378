"""A connection to a server that completes text: finds its API and its model, and streams answers.

One thread at a time uses it; any thread may set `abort`, which closes the connection at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from lcursor.config import CompletionConfig, ModelConfig
from lcursor.errors import ServerError, ServerGarbled, ServerModelMissing, ServerUnreachable
from lcursor.fim.completion_apis import APIS, CompletionApi, Piece
from lcursor.fim.prompt_text import TextPrompt
from lcursor.http import detect, endpoint, sse
from lcursor.http.client import KEEP_LOCAL_S, Call, Client


class Abort:
    """The flag that stops a request; it closes the connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._call: Call | None = None

    def set(self, *, immediately: bool = False) -> None:
        """Stop the running request and, until `clear`, later ones; always at once.

        Thread: any.
        """
        with self._lock:
            self._is_set = True
            call = self._call
        if call is not None:
            call.close()

    def clear(self) -> None:
        """Allow requests again."""
        with self._lock:
            self._is_set = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    @contextmanager
    def watching(self, call: Call) -> Iterator[Call]:
        """Close a call when the flag is set, and always at the end."""
        with self._lock:
            self._call = call
            is_late = self._is_set
        if is_late:
            call.close()
        try:
            yield call
        finally:
            with self._lock:
                self._call = None
            call.close()


class CompletionServer:
    """A connection to the server of a model. Nothing is sent before `connect`.

    Args:
        server: the model.
        is_suitable: whether a model is suitable, by its name; chooses one of several.

    Attributes:
        model: name of the model; "" before `connect`.
        name: address of the server, for messages.

    Raises:
        ConfigInvalid: the address or the kind of server is not valid.
        KeyMissing: the configured source has no key.
    """

    def __init__(self, server: ModelConfig, is_suitable: Callable[[str], bool]) -> None:
        self._server, self._is_suitable = server, is_suitable
        self.abort = Abort()
        self.model = ""
        self._api: CompletionApi | None = None
        self._used_s = 0.0
        self._kind = detect.kind_of(server.api, server.setting)
        base = endpoint.check_url(server.url, f"{server.setting}url")
        key = endpoint.read_key(server.key_env, server.key_command, server.setting)
        self._has_key = bool(key)
        root, self._prefix = endpoint.split_url(base)
        self._client = Client(root, key, server.setting)
        self.name = self._client.name

    @property
    def api(self) -> str:
        """Name of the server's API; "" before `connect`."""
        return next((name for name, one in APIS.items() if one is self._api), "")

    @property
    def is_stale(self) -> bool:
        """Whether another model may answer: that of a llama-server that was restarted meanwhile.

        Not while the user types, because it costs a request to find out.
        """
        names_model = bool(self._server.model) or self.api != "llama.cpp"
        return not names_model and time.monotonic() - self._used_s > KEEP_LOCAL_S

    def connect(self) -> None:
        """Detect the API and the model of the server.

        Raises:
            ServerError: there is no answer, or no supported API.
            ConfigInvalid: the model is ambiguous.
            Cancelled: `abort` was set.
        """
        server, prefix = self._server, self._prefix
        self._api = None
        found = detect.find(
            self._ask,
            self._kind,
            api=prefix,
            has_key=self._has_key,
            model=server.model,
            server=self.name,
            setting=server.setting,
        )
        api = APIS[found.kind]
        if server.model:
            self.model = server.model
        else:
            path = api.models.format(api=prefix)
            names = api.names(found.reply if found.path == path else self._ask(path))
            self.model = detect.only_model(names, self.name, server.setting, self._is_suitable)
        self._api, self._used_s = api, time.monotonic()

    def stream(self, prompt: TextPrompt, config: CompletionConfig) -> Generator[Piece, None, None]:
        """Send a prompt, and yield the parts of the answer; connects before.

        Raises:
            Cancelled: `abort` was set.
            ServerError: see `Client`.
        """
        if self._api is None:
            self.connect()
        assert self._api is not None
        api = self._api
        body, has_reply = api.body(prompt, self.model, config), False
        try:
            with self.abort.watching(
                self._client.stream(api.path.format(api=self._prefix), body)
            ) as call:
                for found in sse.objects(call, self.name):
                    has_reply = True
                    yield api.read(found)
        except ServerError as error:
            is_loading = error.status == HTTPStatus.SERVICE_UNAVAILABLE
            if is_loading or isinstance(error, ServerUnreachable | ServerModelMissing):
                self._api = None  # another server or model may answer next time
            raise
        finally:
            self._used_s = time.monotonic()
        if not has_reply:
            raise ServerGarbled(f"{self.name} sent an empty answer", sse.HINT)

    def close(self) -> None:
        """Close the connections."""
        self.abort.set()
        self._client.close()

    def _ask(self, path: str) -> dict[str, object]:
        with self.abort.watching(self._client.request(path)) as call:
            return call.json()
