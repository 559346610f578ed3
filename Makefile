# One word runs everything; CI runs the same words.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test lint docs pictures clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/broca localize reference --task addition --out broca-out

test: install
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: install
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	$(BIN)/python docs/commands.py
	$(BIN)/mkdocs build --quiet --strict
	$(BIN)/python docs/hooks.py check build/site

pictures: install
	BROCA_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/browser

clean:
	rm -rf $(VENV) broca-out build .pytest_cache .mypy_cache .ruff_cache
