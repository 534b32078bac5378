# The tasks of this repository; `make help` lists them.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
MODEL  := qwen2.5-coder-0.5b
EMBED  := minilm-l6-v2-int8
SETUP  := $(PYTHON) lcursor/install.py --venv $(VENV)
ARGS   ?=

# With ARGS, a folder in which no test was selected (5) is no failure.
define tested
$(RUN) -m pytest $(1) $(ARGS) $(if $(ARGS),|| [ $$? -eq 5 ])
endef

# Tests start hundreds of Python processes: compile each module once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo try test check format docs pictures plots bench lock clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo:  ## set up, then show suggestions, a chat, an edit and an agent
	@$(SETUP) --with neovim --model $(MODEL) --embedder $(EMBED)
	@$(RUN) -m lcursor demo $(ARGS)

try:  ## set up, then open that Neovim for you
	@$(SETUP) --with neovim --model $(MODEL) --embedder $(EMBED)
	@$(RUN) -m lcursor try $(ARGS)

test:  ## set up, then run every test; ARGS="-k ghost" selects
	@$(SETUP) --with neovim --with dev --with mcp --model $(MODEL) --model $(EMBED)
	@$(call tested,--ignore tests/model -n 3 --dist loadfile --durations 20)  # for two cores: tests also wait
	@$(call tested,tests/model)  # the model needs all cores

check:  ## lint, format, types and documentation drift; changes nothing
	@$(SETUP) --with neovim --with lint --with mcp
	@command -v luacheck >/dev/null || { \
	  echo "lcursor: no luacheck here. Debian or Ubuntu: sudo apt install lua-check; macOS: brew install luacheck" >&2; exit 1; }
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	$(RUN) -m mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(VENV)/bin/stylua --check lua plugin tests
	luacheck --quiet lua plugin tests
	$(RUN) scripts/gen_docs.py --check

format:  ## format all code
	@$(SETUP) --with lint
	$(RUN) -m ruff check --fix
	$(RUN) -m ruff format
	$(VENV)/bin/stylua lua plugin tests

docs:  ## write the generated files and blocks
	@$(SETUP) --with neovim
	$(RUN) scripts/gen_docs.py

pictures:  ## record the pictures of the README
	@$(SETUP) --with neovim --model $(MODEL) --embedder $(EMBED)
	@$(RUN) scripts/pictures.py

plots:  ## draw the plots of doc/benchmarks.md from bench/results
	@$(PYTHON) scripts/plots.py

bench:  ## measure speed; ARGS=--json for programs
	@$(SETUP) --with neovim --model $(MODEL)
	@$(RUN) -m lcursor bench $(ARGS)

lock:  ## resolve the requirements; needs uv
	@for name in requirements requirements/dev requirements/build requirements/cuda requirements/cuda-build requirements/mcp requirements/neovim; do \
	  uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --upgrade \
	    --custom-compile-command "make lock" $$name.in --output-file $$name.lock || exit 1; done

clean:  ## remove the environment and the caches of the tools; models stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find lcursor bench evals rplugin scripts tests -name __pycache__ -prune -exec rm -rf {} +
