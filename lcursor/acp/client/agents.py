"""The foreign agents that a run may use, by name; see `agent.parts.ForeignAgents`."""

from __future__ import annotations

from collections.abc import Sequence

from lcursor.acp.client import catalog
from lcursor.acp.client.launch import Launch, find_command
from lcursor.acp.client.work import ForeignWork
from lcursor.agent.parts import ForeignRequest, Work
from lcursor.config import Config, ForeignAgentConfig
from lcursor.errors import AgentMissing
from lcursor.llm.pool import ModelPool
from lcursor.protocol.agent import AgentModel


class ForeignAgentsOf:
    """The agents of the catalogue and of the settings. Thread: any.

    A name of the user's own models is that model.
    """

    def __init__(self, config: Config, models: ModelPool) -> None:
        self._config, self._models = config, models
        self._settings = {each.name: each for each in config.agent.foreign}

    def has(self, name: str) -> bool:
        """Return whether a name is that of an agent, not of a model."""
        is_model = any(model.name == name for model in self._config.chat.models)
        return not is_model and catalog.find(name, self._settings.get(name)) is not None

    def open(self, request: ForeignRequest) -> tuple[Work, str]:
        """Return what carries out a run, and what the user should know of it.

        Raises:
            AgentMissing: it is not installed.
        """
        settings = self._settings.get(request.name) or ForeignAgentConfig(request.name)
        known = catalog.find(request.name, settings)
        assert known is not None
        if request.wanted.policy == "plan" and not (known.plans or known.plan_option):
            raise AgentMissing(
                f"{known.title} has no mode in which it only plans", "Use another policy"
            )
        find_command(known, settings)
        launch = Launch(
            known,
            settings,
            self._config.chat,
            self._config.agent,
            self._models,
            request.tree,
            request.sandbox,
            request.wanted.stopped,
            self._config.privacy.exclude,
        )
        note = "with your login"
        if not settings.login:
            model = self._models.choose(settings.model, self._config.chat.model)
            note = f"with the model {model}"
        if known.asks_little and request.wanted.policy == "ask":
            note += f"\n{known.title} asks only before some commands; all run in the sandbox"
        return ForeignWork(known, launch.start, request), note

    def rows(self) -> Sequence[AgentModel]:
        """Return all agents, with what is missing for each."""
        names = {*catalog.KNOWN, *self._settings}
        return [self._row(name) for name in sorted(names) if self.has(name)]

    def _row(self, name: str) -> AgentModel:
        settings = self._settings.get(name) or ForeignAgentConfig(name)
        known, missing = catalog.find(name, settings), ""
        assert known is not None
        try:
            find_command(known, settings)
        except AgentMissing:
            missing = known.install or f"agents.{name}.command does not exist"
        return {"name": name, "title": known.title, "missing": missing, "is_agent": True}
