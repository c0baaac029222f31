# `make demo` and `make test` do all the set-up by themselves; they need Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint types layers unit gpu versions clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,sanitizer]'
	rm -rf build
	touch $@

# The wrong built-in target must be found: kcheck's exit code 1 is this demo's success.
demo: $(STAMP)
	$(BIN)/kcheck fuzz builtin:paged_gather_shape_stride --max-examples 50 --seed 1; test $$? -eq 1
	@echo 'kcheck is $(BIN)/kcheck here'

test: lint types layers unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile

# On a machine with a GPU, in an environment that has torch with CUDA: make gpu PYTHON=python3
gpu:
	PYTHONPATH=. $(PYTHON) -m pytest -m "gpu or sanitizer"

# The CPU backend, and kernels compiled with checks, under every Triton version known: make versions VERSIONS="3.4.0 3.9.0"
VERSIONS ?= 3.4.0 3.5.1 3.6.0 3.8.0 3.9.0
versions: $(STAMP)
	@for version in $(VERSIONS); do \
		test -d .versions/$$version || \
			$(BIN)/python -m pip install --quiet --no-deps --target .versions/$$version triton==$$version || exit 1; \
		echo "Triton $$version"; \
		PYTHONPATH=.versions/$$version $(BIN)/python -m pytest -q tests/batched tests/backends tests/cuda_viewcheck || exit 1; \
	done

clean:
	rm -rf $(VENV) .versions build dist *.egg-info .kcheck .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
