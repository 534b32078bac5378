"""The Python side of lcursor: engine, models, and the host that Neovim starts."""

__version__ = "0.1.0"
__all__ = ["__version__"]
