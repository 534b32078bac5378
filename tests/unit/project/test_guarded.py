"""Which names of files show that they run code by themselves, or instruct agents."""

from __future__ import annotations

import pytest

from lcursor.project.guarded import runs_by_itself

GUARDED = """
.nvim.lua sub/.exrc .lazy.lua .luarc.json .luacheckrc .vimspector.json a.code-workspace
.vscode/tasks.json .VSCODE/settings.json .idea/a.xml .zed/tasks.json
eslint.config.js sub/eslint.config.mjs .eslintrc.js .eslintrc.json prettier.config.js vite.config.ts
jest.config.js webpack.config.js tailwind.config.js tsconfig.json jest.setup.js karma.conf.js
pyproject.toml setup.cfg tox.ini pytest.ini mypy.ini .flake8 conftest.py tests/conftest.py setup.py
noxfile.py x.pth sitecustomize.py Cargo.toml build.rs rust-toolchain.toml .cargo/config.toml go.mod
Gemfile .rubocop.yml .rspec Rakefile mix.exs .formatter.exs build.zig build.sbt pom.xml
build.gradle.kts settings.gradle gradlew gradle/wrapper/gradle-wrapper.properties .mvn/jvm.config
composer.json flake.nix shell.nix hie.yaml .merlin deps.edn a.csproj Directory.Build.props
.envrc .Envrc mise.toml .config/mise.toml .mise/config.toml .tool-versions .zshenv .bash_profile
.gitattributes .gitmodules .git/hooks/x .GIT/config sub/.git .husky/pre-commit .lintstagedrc.js
.pre-commit-config.yaml lefthook.yml simple-git-hooks.json sub/HEAD
Makefile makefile MAKEFILE sub/Makefile a.mk Taskfile.yml .justfile CMakeLists.txt cmake/x.cmake
configure WORKSPACE BUILD.bazel .bazelrc package.json sub/package.json .npmrc .pnpmfile.cjs
.yarn/releases/yarn.cjs sub/.yarn/plugins/a/b.cjs gulpfile.js Vagrantfile Procfile
.ycm_extra_conf.py compile_flags.txt .ropeproject/config.py tools/bazel .pnp.cjs .pnp.loader.mjs
lib/libx.so-gdb.py .dir-locals.el .dir-locals-2.el .emacs.d/init.el .tmux.conf .envrc.local
Session.vim ftplugin/python.lua after/plugin/x.lua plugin/x.vim sub/plugin/a/x.vim
.gdbinit .pdbrc .pdbrc.py .irbrc .Rprofile
.github/workflows/ci.yml .gitlab-ci.yml Jenkinsfile .buildkite/pipeline.yml .woodpecker.yml
bitbucket-pipelines.yml Dockerfile Dockerfile.dev Containerfile docker-compose.override.yml
.devcontainer/devcontainer.json .devcontainer.json
AGENTS.md AGENTS.override.md CLAUDE.local.md .mcp.json .cursor/mcp.json .windsurf/rules.md
.clinerules .clinerules/a.md .kiro/settings/mcp.json opencode.json .lcursor/rules/a.md
"""
ORDINARY = """
a.py makefile.py docs/github/ci.yml package.py package.json.md .envrc.txt config.js src/config.ts
build/a.js build.py tasks.py manage.py git/hooks.py src/HEAD.md header.h README.md agents.py
configure.py docker.md Dockerfile.md/a.txt compose.py .editorconfig biome.json .gitignore
.prettierignore LICENSE lib/setup.js env.sh yarn/releases/yarn.cjs .yarn/cache/a.zip go.sum
plugin/x.py plugins/x.lua lua/x.lua tools/bazel.py gdb.py compile_flags.py tmux.conf
Cargo.lock test/eslint.config.test.js a.config
"""


@pytest.mark.parametrize("path", GUARDED.split())
def test_files_that_run_code_by_themselves(path: str) -> None:
    assert runs_by_itself(path)
    assert runs_by_itself(path.upper())


@pytest.mark.parametrize("path", ORDINARY.split())
def test_other_files(path: str) -> None:
    assert not runs_by_itself(path)
