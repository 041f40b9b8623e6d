# Every command a person or CI needs. Python, from 3.11 to 3.13, is all that must be there before.

PYTHON ?= python3
PROFILE ?= book
JOBS ?= 2
LIMIT ?= 60
PORT ?= 8000

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: help profile install book check test quick lint look pdf bench mutants serve requirements clean

VENV := .venv
IN_VENV := $(VENV)/bin/python
# Written last, so an installation that was cut short is not taken for a whole one.
INSTALLED := $(VENV)/installed

help: ## Print this list
	@echo "make <target> [PROFILE=smoke|book|full] [JOBS=2] [LIMIT=60] [AGAIN=1] [PORT=8000] [PYTHON=python3]"
	@sed -nE 's/^([a-z]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r name text; do printf '  %-14s%s\n' "$$name" "$$text"; done

install: $(INSTALLED) ## Make the environment in .venv, at the versions of requirements.txt

book: $(INSTALLED) ## Execute the notebooks that changed (AGAIN=1: all; LIMIT= minutes each), build the pages in build/html
	@$(IN_VENV) -m tools.book --profile "$(PROFILE)" --jobs "$(JOBS)" --limit "$(LIMIT)" \
	  $(if $(AGAIN),--again)

check: book ## Hold the verdicts of the book to what is known not to hold (notebooks/findings.yml)
	@$(IN_VENV) -m supermarket check build --failed

test: $(INSTALLED) ## Run the tests twice: compiled, and with the JIT switched off
	$(IN_VENV) -m pytest -n "$(JOBS)" --dist worksteal -m "not pages"
	NUMBA_DISABLE_JIT=1 $(IN_VENV) -m pytest -n "$(JOBS)" --dist worksteal --kernels only \
	  -m "not book and not browser and not pages"

look: book ## Look at every built page in a browser (needs Chromium)
	$(IN_VENV) -m pytest -n "$(JOBS)" -m pages

pdf: $(INSTALLED) ## Print the whole book into build/supermarket.pdf (needs Chromium)
	@$(IN_VENV) -m tools.pdf --profile "$(PROFILE)" --jobs "$(JOBS)"

lint: $(INSTALLED) ## Check style, formatting, and that no notebook is committed with results
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m ruff format --check .
	$(IN_VENV) -m tools.check_notebooks

quick: lint ## Lint, and the tests that can reach no kernel: less than a minute
	$(IN_VENV) -m pytest -n "$(JOBS)" --dist worksteal --kernels none -q \
	  -m "not book and not browser and not pages"

bench: $(INSTALLED) ## Measure speed and memory, as ratios
	$(IN_VENV) -m benchmarks
	$(IN_VENV) -m benchmarks.network
	$(IN_VENV) -m benchmarks.relatives
	$(IN_VENV) -m benchmarks.first_call

mutants: $(INSTALLED) ## Plant known bugs one at a time, and tell which test sees each (AGAIN=1: all)
	@$(IN_VENV) -m tools.mutants --jobs "$(JOBS)" $(if $(AGAIN),--again)

serve: book ## Build the book and serve it on http://localhost:8000 (PORT=)
	@echo "Serving on http://localhost:$(PORT) until Ctrl-C"
	@$(IN_VENV) -m http.server "$(PORT)" --bind 127.0.0.1 --directory build/html

requirements: ## Recompile requirements.txt from pyproject.toml (needs uv)
	@command -v uv > /dev/null || { echo "This needs uv: https://docs.astral.sh/uv/" >&2; exit 1; }
	uv pip compile --universal --python-version 3.11 --no-annotate requirements.in -o requirements.txt

clean: ## Remove everything that was made, except the environment in .venv
	rm -rf build dist .pytest_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Before an installation of minutes.
profile:
	@sed -nE 's/^([A-Za-z_]+):.*/\1/p' notebooks/profiles.yml | grep -qxF -e "$(PROFILE)" || { \
	  echo "PROFILE=$(PROFILE) is not in notebooks/profiles.yml: use" \
	    "$$(sed -nE 's/^([A-Za-z_]+):.*/\1/p' notebooks/profiles.yml | tr '\n' ' ' | \
	    sed 's/ $$//; s/ /, /g')." >&2; exit 1; }

$(INSTALLED): requirements.txt pyproject.toml | profile
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || \
	  { echo "Python's venv is missing: on Debian, apt-get install python3-venv." >&2; exit 1; }
	@# An environment without this file is a half-made one, or not of this Makefile: start afresh.
	@[ -e $@ ] || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@rm -f $@
	@echo "Installing requirements.txt into $(VENV): a minute or two"
	@$(IN_VENV) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@
