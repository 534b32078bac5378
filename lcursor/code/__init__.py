"""Source code: language detection, syntax trees and definitions.

Used by completion, index, context and edits; reads no files.

    from lcursor.code import languages, symbols

    languages.detect("tool.py")  # "python"
    symbols.top(["def f(a):", "    return a"], "python")  # (Symbol("f", "function", ...),)
"""
