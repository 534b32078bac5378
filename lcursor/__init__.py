"""lcursor's Python half: the engine, the models and the host that Neovim starts."""

__version__ = "0.1.0"
__all__ = ["__version__"]
