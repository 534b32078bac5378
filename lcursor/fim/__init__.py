"""Completion: the in-process engine on llama.cpp, its scheduler, prompts and caches."""
