# Two commands: `make report` (the main job) and `make test`. Each sets up what it needs; a repeated call costs nothing.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
EXTRAS := pdf,app,cluster,discover
SCENARIO ?= base
OUT ?= build
# What the runs with the oldest and the newest releases test: the rooms that lean on other people's numerics, and the shape of the package.
SOME_TESTS ?= tests/supply tests/econ tests/scenarios tests/test_packaging.py
export NO_MKDOCS_2_WARNING := 1
# Build tools of wheels are pinned like everything else.
export UV_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt

# $(call install,PYTHON,WORDS): by uv, or by pip where uv cannot be had.
define install
if test -x $(BIN)/uv; then $(BIN)/uv pip install --quiet --compile-bytecode --python $(1) $(2); else \
  $(1) -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" && $(1) -m pip install --quiet $(2); fi
endef

.PHONY: setup report test lint docs pages sbom constraints wheel-check test-minimum test-latest faults fuzz coverage mutation calibrate clean
setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or call make PYTHON=python3"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv || true
	$(call install,$(BIN)/python,-c constraints.txt -e ".[$(EXTRAS)]" --group dev)
	@touch $(STAMP)

report: $(STAMP)
	$(BIN)/wafer2token run $(SCENARIO) --out $(OUT)/runs --report $(OUT)/reports

test: $(STAMP)
	$(BIN)/python -m pytest -q -rs -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry . --no-ansi

# The pages as a site; a warning (a dead link or anchor, a page in no menu) is an error.
docs: $(STAMP)
	$(BIN)/mkdocs build --quiet --config-file .ci/mkdocs.yml --site-dir $(CURDIR)/$(OUT)/docs
	@echo "$(OUT)/docs/index.html; to search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory $(OUT)/docs"

# What is generated from code and data: the accuracy tables and the list of licences.
pages: $(STAMP)
	$(BIN)/python -m reports.accuracy README.md docs/accuracy.md
	$(BIN)/python tests/release/licences.py docs/licences.md

# Bill of materials (CycloneDX) of the program with its extras, without the tools of developers.
sbom: $(STAMP)
	rm -rf $(OUT)/sbom && mkdir -p $(OUT)/sbom
	$(PYTHON) -m venv --without-pip $(OUT)/sbom/product && $(PYTHON) -m venv $(OUT)/sbom/tool
	$(BIN)/uv pip install --quiet --python $(OUT)/sbom/product -c constraints.txt ".[$(EXTRAS)]"
	$(call install,$(OUT)/sbom/tool/bin/python,-c constraints.txt --group sbom)
	$(OUT)/sbom/tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --validate \
	  --output-format JSON --output-file $(OUT)/sbom.json $(OUT)/sbom/product/bin/python
	$(BIN)/python tests/release/sbom.py $(OUT)/sbom.json
	rm -rf $(OUT)/sbom

# Pins anew; what is pinned stays unless a bound of pyproject.toml asks for more (UPGRADE=--upgrade moves all).
constraints: $(STAMP)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev --group sbom \
	  --no-header --no-annotate $(UPGRADE) pyproject.toml -o constraints.txt

wheel-check: $(STAMP)
	rm -rf dist/check && mkdir -p dist/check/elsewhere
	$(BIN)/python -m hatchling build -t sdist -t wheel -d dist/check
	$(PYTHON) -m venv dist/check/venv
	$(call install,dist/check/venv/bin/python,-c constraints.txt dist/check/*.whl)
	cd dist/check/elsewhere && ../venv/bin/wafer2token run course_11_1 --json >/dev/null && \
	  ../venv/bin/wafer2token facts --show tsmc_cowos_wafer_price_2026_01 >/dev/null
	rm -rf dist/check
	@echo "the wheel runs from another folder"

# The oldest releases that the bounds of pyproject.toml allow; their warnings about each other are theirs.
test-minimum: $(STAMP)
	rm -rf $(OUT)/minimum && $(PYTHON) -m venv --without-pip $(OUT)/minimum
	$(BIN)/uv pip install --quiet --python $(OUT)/minimum --resolution lowest-direct -e ".[$(EXTRAS)]" --group test
	$(OUT)/minimum/bin/python -m pytest -q -n 2 --dist loadfile -o filterwarnings=default $(SOME_TESTS)

# A canary: the newest releases, without pins. What fails here will fail users soon.
test-latest: $(STAMP)
	rm -rf $(OUT)/latest && $(PYTHON) -m venv --without-pip $(OUT)/latest
	$(BIN)/uv pip install --quiet --python $(OUT)/latest --upgrade -e ".[$(EXTRAS)]" --group test
	$(OUT)/latest/bin/python -m pytest -q -n 2 --dist loadfile $(SOME_TESTS)

# An hour each: docs/trust.md tells what they try.
faults: $(STAMP)
	rm -f $(OUT)/faults.jsonl && mkdir -p $(OUT)
	FAULTS=220 FAULTS_LEDGER=$(CURDIR)/$(OUT)/faults.jsonl $(BIN)/python -m pytest -q tests/faults

fuzz: $(STAMP)
	HOSTILE_EXAMPLES=2000 $(BIN)/python -m pytest -q -n 2 tests/hostile

coverage: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --cov --cov-report=term:skip-covered

mutation: $(STAMP)
	$(BIN)/python tests/mutation/mutants.py --mutants 140 --seed 1

calibrate: $(STAMP)
	$(BIN)/python -m econ.performance.calibration

clean:
	rm -rf $(VENV) $(OUT) dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
