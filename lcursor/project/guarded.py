"""Recognize files that run code by themselves, and those that instruct agents, by name. Pure.

Such a file has an effect when a project is opened, saved, built, tested or committed, so that its
change is accepted on its own. Names of ordinary source files, which a user starts, do not count.
"""

from __future__ import annotations

import re
from typing import Final

from lcursor.project.globs import translate

FOLDERS: Final = frozenset({
    # version control, and hooks
    ".git", ".hg", ".svn", ".jj", ".bzr", ".husky", ".githooks", ".lefthook",
    # editors
    ".emacs.d", ".vim", ".nvim", ".vscode", ".idea", ".zed", ".fleet", ".sublime",
    # agents
    ".lcursor", ".agents", ".amazonq", ".augment", ".claude", ".clinerules", ".codex", ".continue",
    ".cursor", ".gemini", ".junie", ".kiro", ".opencode", ".qwen", ".roo", ".windsurf",
    # builds, shells and interpreters
    ".cargo", ".ipython", ".mise", ".mvn", ".ropeproject",
    # continuous integration and containers
    ".buildkite", ".circleci", ".devcontainer", ".forgejo", ".gitea", ".github", ".gitlab",
    ".semaphore", ".teamcity", ".woodpecker", "fastlane",
})  # fmt: skip
"""Folders of which each file counts."""

NAMES: Final = (
    # settings in the home or a project, also as code: of shells, editors, debuggers and linters
    ".*rc", ".*rc.local", ".*rc.{js,cjs,mjs,ts,json,json5,jsonc,yml,yaml,toml,py}", "pylintrc",
    # editors
    ".nvim.lua", ".lazy.lua", ".editor.lua", "{local,session}.vim", "_vimrc", ".dir-locals*.el",
    ".vimspector.json", ".projections.json", ".neoconf.json", ".luarc.json*", ".busted",
    "*.code-workspace",
    # language servers, linters and formatters
    "*.{config,conf,setup}.{js,cjs,mjs,ts,cts,mts}", "tsconfig*.json", "jsconfig*.json",
    ".flake8", "mypy.ini", ".mypy.ini", ".sqlfluff", ".rubocop*.yml", ".solargraph.yml",
    ".golangci.{yml,yaml,toml,json}", "gopls.mod", "rust-toolchain", "rust-toolchain.toml",
    "{.,}rust-analyzer.toml", ".scalafix.conf", "phpstan*.neon*", ".php-cs-fixer*.php",
    "psalm.xml*", ".merlin", "hie.yaml", ".clangd", ".ycm_extra_conf.py",
    "compile_commands.json", "compile_flags.txt",
    # shells
    ".tmux.conf", ".env.sh", ".autoenv*", ".in", ".out", ".profile",
    ".bash_{profile,login,logout,aliases}",
    ".zprofile", ".zshenv", ".zlogin", ".zlogout", "{.,}mise*.toml", ".rtx.toml", ".tool-versions",
    # git
    ".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig", "head",
    ".pre-commit-*.yaml", "prek.toml", "{.,}lefthook*.{yml,yaml,toml,json}", ".overcommit.yml",
    "{.,}simple-git-hooks.{json,js,cjs,ts}", "commitlint.*",
    # builds: make, and what takes its place
    "{makefile,gnumakefile,bsdmakefile}", "makefile.{am,in,inc,pl,win}", "*.mk", "*.mak",
    "{.,}justfile", "*.just", "{.,}taskfile.{yml,yaml,dist.yml,dist.yaml}", "taskfile.*.{yml,yaml}",
    "sconstruct", "sconscript", "wscript", "waf", "meson.build", "cmakelists.txt", "*.cmake",
    "cmake*presets.json", "configure", "configure.{ac,in}", "bootstrap.sh", "autogen.sh",
    "workspace{.bazel,.bzlmod,}", "module.bazel", "build", "*.bazel", "*.bzl", "buck",
    ".buckconfig", "pants*.toml", "pants", "procfile*", "earthfile", "tiltfile", "skaffold.yaml",
    "*.nix", "devbox.json",
    # builds and tests of a language
    "package.json", ".pnpmfile.{cjs,mjs,js}", ".pnp.{cjs,js,loader.mjs}",
    "pnpm-workspace.yaml", "bunfig.toml", "deno.json*",
    "{gulp,grunt,jake}file.*", "turbo.json*", "nx.json", "lerna.json", "cypress.json",
    "conftest.py", "setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "{.,}pytest.ini",
    "noxfile.py", "fabfile.py", "dodo.py", "hatch_build.py", "sitecustomize.py", "*.pth",
    "usercustomize.py", ".pythonstartup", "cargo.toml", "build.rs", "go.mod", "go.work",
    "gemfile*", "*.gemspec", "rakefile*", "*.rake", "{guard,cap,pod,fast,brew,vagrant,danger}file",
    ".rspec", "{spec,rails}_helper.rb", "config.ru", "mix.exs", ".*.exs", "build.zig*", "*.sbt",
    "build.sc", "pom.xml", "*.gradle", "*.gradle.kts", "gradlew*", "gradle-wrapper.properties",
    "mvnw*", "maven-wrapper.properties", "deps.edn", "project.clj", "build.clj", "dune",
    "dune-project", "*.opam", "*.cabal", "cabal.project*", "stack.yaml", "setup.hs",
    "composer.json", "phpunit.xml*", "package.swift", "build.pl", "nuget.config",
    "*.{csproj,fsproj,vbproj,vcxproj,proj,props,targets}",
    # debuggers and interactive interpreters
    ".gdbinit", "*-gdb.{py,gdb,scm}", ".lldbinit", ".ghci", ".rprofile", ".renviron", ".my.cnf",
    # continuous integration and containers
    ".gitlab-ci*.yml", ".travis.yml", "jenkinsfile*", "azure-pipelines*.{yml,yaml}",
    "bitbucket-pipelines.yml", ".drone.{yml,yaml,star,jsonnet}", ".woodpecker*.{yml,yaml}",
    "{.,}appveyor.yml", ".cirrus.{yml,star}", "cloudbuild*.{yml,yaml}", "buildspec*.{yml,yaml}",
    "dockerfile{.*,}", "containerfile{.*,}", "*.dockerfile", "docker-compose*.{yml,yaml}",
    "compose*.{yml,yaml}", ".devcontainer.json", ".gitpod.yml", ".gitpod.dockerfile", ".replit",
    # agents
    "{agents,claude,gemini,qwen,copilot}{.*,}.md", "{.,}mcp.json", ".cursorrules", ".windsurfrules",
    ".clinerules", ".roomodes", ".aider.conf.yml", "opencode.json*", "{.,}crush.json",
)  # fmt: skip
"""Globs of names of files."""

PATHS: Final = (
    ".yarn/{releases,plugins,sdks}/**",
    "tools/bazel",
    "{after,autoload,ftdetect,ftplugin,indent,plugin,syntax}/**/*.{vim,lua}",
)
"""Globs of the ends of paths."""

BARE_REPOSITORY: Final = frozenset({
    "commondir", "config", "config.worktree", "hooks", "objects", "refs",
})  # fmt: skip
"""What stands beside `HEAD` in a repository without a working tree, whose `config` names programs
that git runs for a file below it."""

_NAME: Final = re.compile("|".join(f"(?:{translate(glob)})" for glob in NAMES))
_PATH: Final = re.compile("|".join(f"(?:.*/)?(?:{translate(glob)})" for glob in PATHS), re.S)


def runs_by_itself(path: str) -> bool:
    """Return whether a file runs code by itself or instructs agents, by its relative path."""
    whole = path.lower()
    *folders, name = whole.split("/")
    is_named = name in FOLDERS or _NAME.fullmatch(name) is not None
    return is_named or not FOLDERS.isdisjoint(folders) or _PATH.fullmatch(whole) is not None
