# Thin entry: every target is one command that can be read and run by itself.
.PHONY: help install demo test test-all quick fresh release bench docs site clean
.DEFAULT_GOAL := help

# Compiled once, not by every process that is started.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
NAME ?=
ARGS ?=
INSTALLED = test -x $(VENV)/bin/pytest || { echo "this takes what 'make install' installs: run that first" >&2; exit 1; }

help:    ## show the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

install: ## install what is missing: system packages (asks sudo when needed) and the virtual environment
	@tools/bootstrap test

demo: ## raise a 4-node virtual cluster with mistakes, find and mend them, name the report (installs only what that needs)
	@tools/bootstrap demo
	@tools/demo

test: install ## every kind of real thing once, a quarter of an hour: what CI runs (ARGS: for pytest)
	@tools/test $(ARGS)

test-all: ## the rest: repeated, exhaustive, fuzzed, long; goes on where it was (ARGS: --shard 2/4, --anew, for pytest)
	@tools/bootstrap all
	@tools/test all $(ARGS)

quick: ## the tests that only calculate, a minute and a half: no root, no lab, no browser, no native build
	@$(INSTALLED)
	@$(VENV)/bin/python -m pytest -q --tier=quick -n 4 --dist loadgroup --no-loadscope-reorder tests/unit tests/golden

fresh: ## the commands of README on a bare Debian in a closed place (root; ARGS: --release trixie, parts)
	@tools/fresh $(ARGS)

release: ## wheel, Debian package and RPM below dist/, proven on a bare system (root; ARGS: parts, --for trixie:3.13)
	@tools/bootstrap release
	@tools/release $(ARGS)

bench: ## all comparisons, or one: make bench NAME=probe-mpi
	@tools/bootstrap all
	@$(VENV)/bin/python -m bench $(NAME) $(ARGS)

docs: ## write docs/reference from the program itself
	@$(INSTALLED)
	@$(VENV)/bin/python tools/reference.py

site: ## the documentation as a site that works offline: build/site/index.html
	@$(INSTALLED)
	@$(VENV)/bin/python tools/docs_site.py

clean: ## remove what was built here
	rm -rf $(VENV) build dist artefacts .mypy_cache .ruff_cache .pytest_cache .hypothesis
