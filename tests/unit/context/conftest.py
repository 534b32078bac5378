"""Every test has a project of its own, and nothing of the person who runs it."""

from tests.unit.project.conftest import home as home
from tests.unit.project.conftest import root as root
