# Two commands: `make demo` runs the main job and ends with a report, `make test` runs the tests.
# Both make the environment (.venv) from requirements.lock first, where it is not there yet.

PYTHON ?= python3.11
ENVIRONMENT := .venv/.made-from-requirements.lock
SITE_ENVIRONMENT := .venv-site/.made-from-requirements-site.lock
RUN := .venv/bin/python
# About half of the time of make unit.
NUMBERS := tests/clustering tests/aggregation tests/papers tests/scorecard
# About a quarter of the time of make test each; the fourth has all other tests.
PHASES := tests/phases
PROGRAMS := tests/programs tests/report tests/test_readme.py
STUDIES := tests/studies tests/engine

.PHONY: demo environments test test-phases test-programs test-studies test-others unit unit-numbers unit-others check docs docs-check site lock licences clean

demo: $(ENVIRONMENT)
	$(RUN) -m phases.run_all --flagfile=flags/demo.flags

# Four quarters side by side, on two cores too: programs wait for imports, disk and workers.
test: $(ENVIRONMENT)
	@$(MAKE) --no-print-directory --jobs=4 --keep-going test-phases test-programs test-studies test-others

test-phases: $(ENVIRONMENT)
	$(RUN) -m pytest $(PHASES)

test-programs: $(ENVIRONMENT)
	$(RUN) -m pytest $(PROGRAMS)

test-studies: $(ENVIRONMENT)
	$(RUN) -m pytest $(STUDIES)

test-others: $(ENVIRONMENT)
	$(RUN) -m pytest $(foreach each,$(PHASES) $(PROGRAMS) $(STUDIES),--ignore=$(each))

# Without TensorFlow, programs and reports.
unit: $(ENVIRONMENT)
	@$(MAKE) --no-print-directory --jobs=2 --keep-going unit-numbers unit-others

unit-numbers: $(ENVIRONMENT)
	$(RUN) -m pytest -m "not tensorflow and not program" --hypothesis-profile=quick $(NUMBERS)

unit-others: $(ENVIRONMENT)
	$(RUN) -m pytest -m "not tensorflow and not program" --hypothesis-profile=quick $(foreach each,$(NUMBERS),--ignore=$(each))

check: $(ENVIRONMENT)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest -q --durations=0 tests/test_mutations.py tests/test_layers.py

# Writes the pages and pictures of docs/ that are made from the code, and those of docs/results/ from their templates and kept files.
docs: $(ENVIRONMENT)
	$(RUN) -m docs.programs.write
	$(RUN) -m docs.programs.result_pages

# Seconds, and no TensorFlow.
docs-check: $(ENVIRONMENT)
	$(RUN) -m docs.programs.result_pages --check

# Builds site/index.html from docs/; a link that leads nowhere is an error. Once .venv-site is there, no network is needed.
site: $(SITE_ENVIRONMENT)
	NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict --quiet
	@echo 'site $(CURDIR)/site/index.html'

# That of the project, and that of its site.
environments: $(ENVIRONMENT) $(SITE_ENVIRONMENT)

# A folder for each environment; `--no-deps` because a lock names all that is installed.
# Modules are compiled on all cores, where pip uses one; what cannot be is no module (a package of the lock has such a file).
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo 'make: TensorFlow Federated 0.87 needs Python 3.11, and "$(PYTHON)" is not that.' \
	    'Install it (docs/howto/install.md) or give its path: make demo PYTHON=/path/to/python3.11' >&2; \
	  exit 2; }
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --no-deps --require-hashes -r $<
	$(@D)/bin/python -m compileall -qq -j 0 $(@D)/lib || true
	touch $@
endef

$(ENVIRONMENT): requirements.lock
	$(environment)

$(SITE_ENVIRONMENT): requirements-site.lock
	$(environment)

# Resolves anew; see BUILD.md. Needs uv.
COMPILE := uv pip compile --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet
lock:
	$(COMPILE) --override requirements.overrides.txt --output-file requirements.lock requirements.in
	$(COMPILE) --output-file requirements-site.lock requirements-site.in

# Writes the table of docs/licences.md anew; after `make lock`.
licences: $(ENVIRONMENT)
	$(RUN) -m docs.programs.licences

clean:
	rm -rf .venv .venv-site site
