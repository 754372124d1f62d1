# make demo   from a paper to a model that talks (install, then about three minutes of training)
# make test   lint, then every test, the pages in Chromium among them (installs what they need)
# make test-web  only the pages, driven in Chromium as a visitor does
# make site   the documentation and the browser pages, into build/site, for any static host
# make serve  the same, shown at http://127.0.0.1:8000
# make bench  speed, side by side with torch and llama.cpp (needs a quiet machine)
# make clean  remove what was built; runs/ stays

PYTHON ?= python3
# The tests compare with torch; this is the version they were written against.
TORCH ?= torch==2.13.0
PY := .venv/bin/python
# What trains, saves and reports: run once on the numpy tape and once more on torch.
TRAINING_TESTS := $(addprefix tests/test_, train.py resume.py cli.py bad_input.py overwrite.py \
                    evaluate.py records.py)

.PHONY: demo test test-web lint site serve bench clean

demo: .venv/installed
	$(PY) -m paperkiln demo specs/tinychat-quick.tex

test: .venv/test-installed lint
	$(PY) -m pytest -n 2 --ignore=tests/web
	PAPERKILN_TEST_DEVICE=torch-cpu $(PY) -m pytest -n 2 -q $(TRAINING_TESTS)
	$(MAKE) test-web

test-web: .venv/browser
	$(PY) -m pytest -n 2 tests/web

lint: .venv/test-installed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

site: .venv/site-installed
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	$(PY) web/build.py build/site

serve: site
	$(PY) -m http.server -b 127.0.0.1 -d build/site 8000

bench: .venv/test-installed
	$(PY) -m paperkiln bench train
	$(PY) -m paperkiln bench generate

# Debian's Chromium, or Playwright's own; where neither can be had those tests say so and are skipped.
.venv/browser: .venv/test-installed
	@{ command -v chromium || { apt-get update -q && apt-get install -y -q chromium; }; } \
	  >/dev/null 2>&1 || $(PY) -m playwright install chromium && touch $@ || true

clean:
	rm -rf .venv build .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "paperkiln needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }

.venv/installed: .venv/bin/python pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/site-installed: .venv/bin/python pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[docs,fast]'
	@touch $@

.venv/test-installed: .venv/bin/python pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check $(TORCH) -e '.[test,fast,atlas,hf,docs]'
	@touch $@
