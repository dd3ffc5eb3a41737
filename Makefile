# Every target builds .venv by itself when it is not there.
PYTHON ?= python3
BIN := .venv/bin
# make fuzz SECONDS=3600 damages what poolbn reads. make test SEED=1 shuffles; MARKS=slow runs the slow tests, TESTS=tests/test_mixed.py a part.
MARKS ?= not slow
DIST ?= loadscope
SHUFFLE := $(if $(SEED),-p randomly --randomly-seed=$(SEED) --no-loadscope-reorder)
BASE ?= HEAD
SECONDS ?= 60
# Without bytecode each worker and each process that a test starts compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test kernels lint study bench bench-smoke bench-compare docs dist lowest fuzz clean clean-kernels

demo: .venv/runs
	$(BIN)/python -m poolbn demo --force

test: kernels
	$(BIN)/python -m pytest -n auto --dist $(DIST) -m '$(MARKS)' $(SHUFFLE) $(TESTS)

kernels: .venv/ready
	$(BIN)/python tests/warm.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

study: .venv/ready
	$(BIN)/python -m benchmarks.study run --preset smoke --out build/study/smoke
	$(BIN)/python -m benchmarks.study report build/study/smoke --out build/study/report

bench: .venv/ready
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/read.py
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/large_n.py --nodes 100 200 500
	$(BIN)/python benchmarks/infer.py
	$(BIN)/python benchmarks/intervals.py

# All benchmarks on something tiny: do they run?
bench-smoke: .venv/ready
	$(BIN)/python benchmarks/smoke.py

bench-compare: .venv/ready
	$(BIN)/python benchmarks/compare.py $(BASE)

fuzz: kernels
	$(BIN)/python tests/fuzz.py $(SECONDS)

docs: .venv/ready
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet
	POOLBN_SITE=site $(BIN)/python -m pytest -n 0 tests/test_site.py
	@echo 'the pages are in site/index.html, and open from there'

# Wheel and sdist, checked, each installed where nothing else is; the wheel shows the demo.
dist:
	rm -rf dist build/dist
	$(PYTHON) -m venv build/dist/tools
	build/dist/tools/bin/python -m pip install --quiet build twine
	build/dist/tools/bin/python -m build --outdir dist .
	build/dist/tools/bin/twine check --strict dist/*
	$(PYTHON) -m venv build/dist/sdist
	build/dist/sdist/bin/python -m pip install --quiet dist/*.tar.gz
	cd build/dist && sdist/bin/poolbn --version
	$(PYTHON) -m venv build/dist/wheel
	build/dist/wheel/bin/python -m pip install --quiet dist/*.whl
	cd build/dist && wheel/bin/poolbn demo --force --out demo
	@echo 'dist/ has the wheel and the sdist; build/dist/demo has what the demo wrote'

# Tests with the oldest versions that pyproject.toml allows, in an environment of their own.
LOWEST ?= tests/test_data.py tests/test_streams.py tests/test_formats.py tests/test_mixed.py tests/test_search.py tests/test_infer.py \
	tests/test_glmm.py tests/test_missing.py tests/test_plots.py tests/test_networkfile.py tests/test_names.py
lowest:
	rm -rf build/lowest
	$(PYTHON) -m venv build/lowest
	$(PYTHON) tests/lowest.py > build/lowest/bounds.txt
	build/lowest/bin/python -m pip install --quiet --constraint build/lowest/bounds.txt \
		'.[graphs,formats,sklearn,dask]' hypothesis polars pytest pytest-randomly pytest-xdist
	build/lowest/bin/python tests/warm.py
	build/lowest/bin/python -m pytest -n 0 -m 'not slow' -o filterwarnings=default $(LOWEST)

# What users install. Modules become bytecode when they are first imported, which most never are.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
.venv/runs: pyproject.toml
	$(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

.venv/ready: .venv/runs
	$(INSTALL) -e '.[dev]'
	touch $@

clean-kernels:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build/compare
