"""The forms in which models call tools: prompts, grammars and parsers. Pure."""
