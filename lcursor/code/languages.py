"""Detect the language of a file by its name and its first line. Any thread."""

from __future__ import annotations

import re
from typing import Final

TEXT: Final = "text"

EXTENSIONS: Final = {
    "bash": "sh bash zsh ksh bats ebuild eclass",
    "c": "c h",
    "cpp": "cpp cc cxx c++ hpp hh hxx h++ ipp tpp inl cu cuh ino",
    "csharp": "cs csx cake",
    "css": "css",
    "elixir": "ex exs",
    "go": "go",
    "haskell": "hs",
    "html": "html htm xhtml",
    "java": "java jav",
    "javascript": "js mjs cjs jsx es6",
    "json": "json jsonc json5 geojson webmanifest ipynb code-workspace",
    "kotlin": "kt kts",
    "lua": "lua rockspec",
    "markdown": "md markdown mdx mkd qmd",
    "ocaml": "ml",
    "ocaml_interface": "mli",
    "php": "php php3 php4 php5 php7 phtml",
    "python": "py pyi pyw pyx pxd bzl sage",
    "ruby": "rb rake gemspec ru podspec jbuilder rbi",
    "rust": "rs",
    "scala": "scala sc sbt",
    "sql": "sql ddl dml psql pgsql mysql",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "ts mts cts",
    "yaml": "yaml yml clang-format clang-tidy",
    "zig": "zig zon",
    # Without a grammar: chunked by lines, and usable in the `lang:` filter.
    "asm": "s asm nasm",
    "batch": "bat cmd",
    "clojure": "clj cljs cljc edn",
    "cmake": "cmake",
    "d": "d",
    "dart": "dart",
    "diff": "diff patch",
    "dockerfile": "dockerfile containerfile",
    "erlang": "erl hrl",
    "fish": "fish",
    "fortran": "f f77 f90 f95 f03 f08 for",
    "fsharp": "fs fsi fsx",
    "gdscript": "gd",
    "glsl": "glsl vert frag comp geom hlsl wgsl metal",
    "graphql": "graphql gql",
    "groovy": "groovy gradle",
    "hcl": "tf hcl",
    "ini": "ini cfg conf properties editorconfig desktop service",
    "jinja": "j2 jinja jinja2",
    "julia": "jl",
    "less": "less",
    "lisp": "lisp lsp cl el",
    "make": "mk mak make",
    "matlab": "m",
    "meson": "meson",
    "nim": "nim nims",
    "nix": "nix",
    "objc": "mm",
    "pascal": "pas dpr",
    "perl": "pl pm t",
    "powershell": "ps1 psm1 psd1",
    "proto": "proto",
    "r": "r rmd",
    "rst": "rst",
    "scheme": "scm ss rkt",
    "scss": "scss sass",
    "solidity": "sol",
    "svelte": "svelte",
    "tcl": "tcl",
    "tex": "tex sty cls bib",
    "verilog": "v sv svh vh",
    "vhdl": "vhd vhdl",
    "vim": "vim",
    "vue": "vue",
    "xml": "xml xsd xsl xslt svg plist csproj vcxproj props targets",
}
"""Language -> its extensions, in lower case."""

NAMES: Final = {
    "bash": ".bashrc .bash_profile .bash_aliases .profile .zshrc .zshenv .zprofile PKGBUILD",
    "cmake": "CMakeLists.txt",
    "dockerfile": "Dockerfile Containerfile",
    "groovy": "Jenkinsfile",
    "json": ".babelrc .eslintrc .prettierrc .jshintrc .luarc .swcrc composer.lock Pipfile.lock",
    "make": "Makefile makefile GNUmakefile Kbuild",
    "meson": "meson.build meson_options.txt",
    "python": "SConstruct SConscript BUILD WORKSPACE wscript Snakefile",
    "ruby": "Gemfile Rakefile Guardfile Podfile Vagrantfile Fastfile Brewfile .irbrc",
    "toml": "Pipfile Cargo.lock poetry.lock uv.lock",
    "vim": ".vimrc .gvimrc vimrc",
    "ini": ".gitconfig .gitmodules .npmrc .flake8 .pylintrc .coveragerc",
}
"""Language -> whole file names."""

INTERPRETERS: Final = {
    "bash": "sh bash zsh dash ksh ash bats",
    "elixir": "elixir iex",
    "fish": "fish",
    "groovy": "groovy",
    "haskell": "runhaskell runghc stack",
    "javascript": "node nodejs bun",
    "julia": "julia",
    "kotlin": "kotlin",
    "lua": "lua luajit nvim texlua",
    "make": "make",
    "ocaml": "ocaml",
    "perl": "perl",
    "php": "php",
    "powershell": "pwsh",
    "python": "python pypy uv",
    "r": "rscript",
    "ruby": "ruby",
    "rust": "rust-script",
    "scala": "scala",
    "swift": "swift",
    "tcl": "tclsh wish",
    "typescript": "deno ts-node tsx",
}
"""Language -> interpreters named in a first line `#!…`, without their version."""


def _turned(table: dict[str, str]) -> dict[str, str]:
    return {word: language for language, words in table.items() for word in words.split()}


_BY_EXTENSION: Final = _turned(EXTENSIONS)
_BY_NAME: Final = _turned(NAMES)
_BY_INTERPRETER: Final = _turned(INTERPRETERS)

_HASH_BANG: Final = re.compile(r"#!\s*(?P<program>\S+)(?P<rest>.*)")
_VERSION: Final = re.compile(r"[\d.]+$")
_TEST: Final = re.compile(r"(?:^|/)(?:tests?|specs?)/|(?:^|/)test_|[._](?:test|spec)\.")


def detect(path: str, first_line: str = "") -> str:
    """Return the name of a file's language; `text` if unknown.

    Args:
        first_line: its `#!` counts if the file name is unknown.
    """
    name = path.rpartition("/")[2]
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, dot, extension = name.rpartition(".")
    if dot:
        known = _BY_EXTENSION.get(extension.lower())
        if known:
            return known
    elif name.lower() in {"dockerfile", "containerfile", "makefile"}:
        return _BY_EXTENSION.get(name.lower(), "make")
    if stem in {"Dockerfile", "Containerfile"}:  # Dockerfile.dev
        return "dockerfile"
    return _interpreted(first_line)


def is_test(path: str) -> bool:
    """Return whether a path in a project is that of a test."""
    return _TEST.search(path) is not None


def _interpreted(first_line: str) -> str:
    found = _HASH_BANG.match(first_line)
    if not found:
        return TEXT
    words = [found["program"], *found["rest"].split()]
    if words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    program = words[0].rpartition("/")[2].lower() if words else ""
    return _BY_INTERPRETER.get(program) or _BY_INTERPRETER.get(_VERSION.sub("", program), TEXT)
