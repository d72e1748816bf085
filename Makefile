# Two commands: `make report` (the main job) and `make test`. Each sets up what it needs; a repeated call costs nothing.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
EXTRAS := pdf,interactive,sankey,app,cluster,discover
SCENARIO ?= base
OUT ?= build

.PHONY: setup report test lint wheel-check calibrate clean
setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or call make PYTHON=python3"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv || true
	if test -x $(BIN)/uv; then \
	  VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode -c constraints.txt -e ".[$(EXTRAS)]" --group dev; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" && \
	  $(BIN)/python -m pip install --quiet -c constraints.txt -e ".[$(EXTRAS)]" --group dev; \
	fi
	@touch $(STAMP)

report: $(STAMP)
	$(BIN)/wafer2token run $(SCENARIO) --out $(OUT)/runs --report $(OUT)/reports

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel-check: $(STAMP)
	rm -rf dist/check && mkdir -p dist/check/elsewhere
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/check .
	$(PYTHON) -m venv dist/check/venv
	$(BIN)/uv pip install --quiet --python dist/check/venv/bin/python -c constraints.txt dist/check/*.whl || \
	  dist/check/venv/bin/python -m pip install --quiet -c constraints.txt dist/check/*.whl
	cd dist/check/elsewhere && ../venv/bin/wafer2token run course_11_1 --json >/dev/null && \
	  ../venv/bin/wafer2token facts --show tsmc_cowos_wafer_price_2026_01 >/dev/null
	rm -rf dist/check
	@echo "the wheel runs from another folder"

calibrate: $(STAMP)
	$(BIN)/python -m econ.performance.calibration

clean:
	rm -rf $(VENV) $(OUT) dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
