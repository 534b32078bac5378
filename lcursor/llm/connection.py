"""A connected model."""

from __future__ import annotations

from dataclasses import dataclass

from lcursor.llm.client import ChatClient
from lcursor.llm.records import Served


@dataclass(frozen=True, slots=True)
class Connection:
    """A connected model."""

    name: str
    client: ChatClient
    served: Served
    server: str = ""
    """Identifies the process of the local server, and so its KV cache."""

    @property
    def context_tokens(self) -> int:
        """Context: the smaller of the user's and the server's value; 0 if both are unknown."""
        served = self.client.served or self.served  # the client may have updated it
        limits = (self.client.target.context_tokens, served.context_tokens)
        return min((each for each in limits if each > 0), default=0)
