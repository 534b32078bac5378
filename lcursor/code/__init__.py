"""Source code: its language, its syntax tree, and what is defined in it.

Used by completion, the index, the context of messages and edits; reads no files.

    from lcursor.code import languages, symbols

    languages.detect("tool.py")  # "python"
    symbols.top(["def f(a):", "    return a"], "python")  # (Symbol("f", "function", ...),)
"""
