# One word runs everything; CI runs the same words.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install demo test test-long lint docs architectures pictures compat release clean

install: $(STAMP)

# what a user installs
$(CORE): pyproject.toml constraints.txt
	@echo "Installing broca into $(VENV): torch, transformers, lm-eval and what they need, about 80 packages."
	@echo "The download is 0.5 GB with a torch for CPUs and 3 GB with one for GPUs: some minutes."
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $(CORE)

# and what a developer needs besides
$(STAMP): $(CORE)
	$(PIP) -e '.[dev]'
	@touch $(STAMP)

demo: $(CORE)
	@echo "Localizing addition in a shipped model: about a minute on two cores. Nothing else is downloaded."
	$(BIN)/broca --offline localize reference --task addition --out broca-out

test: install
	$(BIN)/python -m pytest -n auto --dist loadfile

# what a laptop need not wait for: kills of every verb, workers that die and are replaced, many searches
test-long: install
	$(BIN)/python -m pytest --long -m long

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/hadolint Dockerfile space/Dockerfile
	$(BIN)/mypy

docs: install
	$(PIP) -e '.[docs]'
	$(BIN)/python docs/commands.py $(COMMANDS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python docs/hooks.py check build/site

# half an hour on one core: every causal language model of transformers, tiny, with random weights
architectures: install
	$(BIN)/python docs/architectures.py

pictures: install
	BROCA_PICTURES=docs/pictures $(BIN)/python -m pytest -q --long tests/browser

# the wheel on every Python here, with the oldest and the newest packages that pyproject.toml allows
compat: $(CORE)
	$(BIN)/python scripts/compat.py

# builds, checks and test-installs what would be uploaded; it uploads nothing
release:
	$(PYTHON) scripts/release.py

clean:
	rm -rf $(VENV) broca-out build .pytest_cache .mypy_cache .ruff_cache
