# What a newcomer needs, and what continuous integration runs. `make` alone lists it.
#
# Every target installs what it needs: Python packages of pinned versions into .venv, crates through cargo. A target
# whose inputs did not change is quick.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
DEPS := .venv/.installed
ENGINE := .venv/.engine
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -path '*/src/*' -o -name Cargo.toml)

.PHONY: help build profiled wheel demo test test-lowest check fuzz test-kill bench bench-live conformance compare-ns2 validate-live figures studies evaluations overlaps docs docs-site man fmt lock clean
.PHONY: check-format check-lints check-types check-docs test-rust test-python

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- building ----

build: $(ENGINE) ## build the engine and put the aqmlab command into .venv/bin

# The version that Cargo.toml asks for; `sort` finds the two in order where the one that is here is no older.
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
define needs_rust
	found=$$(rustc --version 2> /dev/null | cut -d ' ' -f 2) || true; \
	command -v cargo > /dev/null && test -n "$$found" || \
		{ echo "Rust is missing: install $(RUST) or later, https://rustup.rs" >&2; exit 1; }; \
	printf '%s\n' $(RUST) "$$found" | sort --version-sort --check=quiet || \
		{ echo "Rust $$found is too old: install $(RUST) or later (rustup update), https://rustup.rs" >&2; exit 1; }
endef

$(DEPS): requirements-dev.lock
	@$(needs_rust)
	@echo "Installing pinned Python packages into .venv"
	@$(PYTHON) tools/environment.py .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements-dev.lock
	@touch $@

# An editable install: changes of python/ need no new build.
$(ENGINE): $(DEPS) pyproject.toml $(RUST_SOURCES)
	@$(needs_rust)
	@echo "Building the engine (the first time this takes a minute or two)"
	@unset CONDA_PREFIX; VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin develop --release --locked \
		> .venv/build.log 2>&1 || { cat .venv/build.log; exit 1; }
	@touch $@

# The engine is built to count its branches, makes the runs of benches/training.py, and is built again for what was counted.
NEEDS_PROFDATA := test -x "$$(rustc --print target-libdir)/../bin/llvm-profdata" || \
	{ echo "llvm-profdata is missing: rustup component add llvm-tools" >&2; exit 1; }
profiled: $(DEPS) ## build the engine anew by what it is seen to do, 6 to 14 % faster: ten minutes
	@$(NEEDS_PROFDATA)
	unset CONDA_PREFIX; VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin develop --release --locked --pgo
	@touch $(ENGINE)

wheel: $(DEPS) ## build a wheel of such an engine as profiled builds into dist/, to install elsewhere
	@$(NEEDS_PROFDATA)
	unset CONDA_PREFIX; VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/maturin build --release --locked --pgo --out dist

# ---- the demo ----

DEMO := examples/demo.toml
ifeq ($(FULL),1)
# The published experiment: 120 minutes of which 90 are measured, at the two loads.
HOURS := --set duration=120min --set warmup=20min --set cooldown=10min
demo: $(ENGINE) ## compare queue disciplines under 18,000 web users; FULL=1: the published two hours, at 98 % and 90 %
	@$(call demo,results/demo-full-98,$(HOURS))
	@$(call demo,results/demo-full-90,$(HOURS) --set traffic.0.load=90mbit --set 'name=Web users at 90 % load')
else
demo: $(ENGINE)
	@$(call demo,results/demo,)
endif

# $(1): folder, $(2): settings. A comparison that was interrupted goes on; one made by an older build is made anew.
define demo
	if [ -e $(1) ] && [ ! $(1)/comparison.json -nt $(ENGINE) -o ! $(1)/comparison.json -nt $(DEMO) ]; then \
		echo "$(1) was made by an older build or from an older $(DEMO): making it anew"; rm -rf $(1); fi; \
	$(BIN)/aqmlab compare $(DEMO) -o $(1) --resume --report $(2)
endef

# ---- testing ----

# Packages are fetched, and the engine is linked by one processor for a minute: meanwhile the others compile and run Rust's tests.
test: ## run all tests, Rust and Python
	@$(MAKE) --no-print-directory --jobs 2 $(ENGINE) test-rust
	@$(MAKE) --no-print-directory test-python

test-rust:
	cargo test --locked --workspace --no-fail-fast

# A worker a processor, four at most, for each takes some 700 MB. What measures real time comes after that, with nothing beside it.
test-python: $(ENGINE)
	@failed=0; \
	$(BIN)/python -m pytest -m "not alone" -n auto --maxprocesses 4 --dist worksteal || failed=$$?; \
	$(BIN)/python -m pytest -m alone || failed=$$?; \
	exit $$failed

LOWEST := .venv-lowest
test-lowest: $(ENGINE) ## run the Python tests on the lowest versions of packages that pyproject.toml allows
	@$(PYTHON) tools/environment.py $(LOWEST)
	@$(BIN)/python tools/lowest.py > $(LOWEST)/requirements.txt
	@$(LOWEST)/bin/pip install --quiet --disable-pip-version-check --requirement $(LOWEST)/requirements.txt
	PYTHONPATH=python $(LOWEST)/bin/python -m pytest -W ignore::DeprecationWarning --ignore tests/python/test_documentation.py

check: check-format check-lints check-types check-docs docs-site test ## all that must hold before a commit: format, lints, types, docs, tests

check-format: $(DEPS)
	cargo fmt --all --check
	$(BIN)/ruff format --check .

check-lints: $(DEPS)
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	$(BIN)/ruff check .

check-types: $(ENGINE)
	$(BIN)/mypy --strict
	$(BIN)/mypy --strict tools/*.py

check-docs:
	RUSTDOCFLAGS="--deny warnings --allow rustdoc::private-intra-doc-links" cargo doc --locked --workspace --no-deps --document-private-items --quiet
	cargo run --locked --quiet --package xtask -- docs --check

# Coverage is an unstable flag of rustc: RUSTC_BOOTSTRAP lets the stable one take it.
FUZZ_S ?= 600
FUZZ_TARGETS := operations scenario setting table kept vectors
FUZZ_SEEDS_scenario := examples testdata/malformed/scenario testdata/malformed/sweep
FUZZ_SEEDS_table := testdata/malformed/table
FUZZ_SEEDS_vectors := testdata/malformed/vectors
fuzz: $(ENGINE) ## look for operations that break a discipline's promises, and files that break readers; FUZZ_S: for how many seconds
	@command -v cargo-fuzz > /dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
	@$(foreach target,$(FUZZ_TARGETS),$(call fuzz,$(target)) &&) true
	AQMLAB_FUZZ_S=$$(( $(FUZZ_S) / 7 )) $(BIN)/python -m pytest -q tests/python/test_mutated.py

# $(1): target. What it finds worth keeping goes to fuzz/corpus, what fails to fuzz/artifacts.
define fuzz
	mkdir -p fuzz/corpus/$(1) && RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $(1) fuzz/corpus/$(1) $(FUZZ_SEEDS_$(1)) -- \
		-max_total_time=$$(( $(FUZZ_S) / 7 )) -max_len=$(if $(filter operations,$(1)),1500,20000) -rss_limit_mb=2000 -timeout=20
endef

KILLS ?= 100
KILLS_SEED ?= 1
test-kill: $(ENGINE) ## kill commands at random moments and resume them; KILLS: how often
	AQMLAB_KILLS=$(KILLS) AQMLAB_KILLS_SEED=$(KILLS_SEED) $(BIN)/python -m pytest -q tests/python/test_kills.py

# ---- measuring ----

bench: $(ENGINE) ## measure the engine: time per packet, memory, scaling
	$(BIN)/python benches/bench.py
	PYTHONPATH=python $(BIN)/python benches/steps.py

bench-live: ## measure the live router: packets a second, how late they are, processor time by part; as root or in user namespaces
	cargo build --locked --release --package aqmlab-live --example flood
	@if [ "$$(id -u)" = 0 ]; then target/release/examples/flood; else unshare -Ur target/release/examples/flood; fi

conformance: $(ENGINE) ## compare with other implementations: vectors, theory, the oracle, Linux, ns-2
	cargo test --locked --package aqmlab-aqm --test all -- vectors:: theory:: closed_forms:: equilibria::
	cargo test --locked --package aqmlab-sim --features tcp/both-ways --test all
	cargo test --locked --package aqmlab-scenario --test all -- --nocapture linux:: linux_cake:: linux_random::
	cargo test --locked --package aqmlab-tcp --test linux_transfers -- --nocapture
	cargo test --locked --package aqmlab-tcp --test all -- ns2_packets::
	PYTHONPATH=tests/python $(BIN)/python -m oracle testdata/vectors
	cargo build --locked --release --package aqmlab-scenario --example replay
	PYTHONPATH=tests/python $(BIN)/python -m oracle.conformance compare target/release/examples/replay 1000
	$(BIN)/python benches/coupling.py
	$(BIN)/python benches/peers/compare_ns2.py || [ $$? -eq 3 ]
	$(BIN)/python benches/peers/compare_ns2_transfers.py || [ $$? -eq 3 ]
	$(BIN)/python benches/peers/parking.py
	@echo "The kernel's and its flows' figures are stored ones: benches/peers/linux makes them anew. Not compared: ns-3."
	$(BIN)/python benches/peers/linux/two_hops.py
	@echo "One quantity of the last step is known to differ: docs/validation.md, What agrees."
	$(BIN)/python benches/peers/linux/closed_loop.py

compare-ns2: $(ENGINE) ## run the same network in ns-2 and here, and print both
	$(BIN)/python benches/peers/compare_ns2.py
	$(BIN)/python benches/peers/compare_ns2_transfers.py
	$(BIN)/python benches/peers/parking.py

validate-live: $(ENGINE) ## run the same scenarios in the simulator and between real TCP stacks, and say where they agree
	$(BIN)/python benches/live/validate.py

figures: $(ENGINE) ## measure every discipline and web model, and draw the figures of their pages
	$(BIN)/python tools/discipline_figures.py
	$(BIN)/python tools/traffic_figures.py
	cargo run --locked --quiet --package xtask -- docs

TAKE ?=
studies: $(ENGINE) ## write docs/studies.md from what the studies found; TAKE: result folders whose numbers to keep first
	$(BIN)/python tools/study_pages.py $(TAKE)

evaluations: $(ENGINE) ## write docs/evaluations; TAKE: result folders of evaluations whose numbers to keep first
	$(BIN)/python tools/evaluation_pages.py $(TAKE)

overlaps: $(ENGINE) ## write docs/evaluations/agreement.md: where evaluations, studies and validation overlap
	$(BIN)/python benches/overlaps/overlaps.py --update-docs

# ---- keeping house ----

docs: ## write the generated parts of docs/ anew
	cargo run --locked --quiet --package xtask -- docs

SITE := target/site/html
docs-site: $(ENGINE) ## build the documentation as a site with search, into target/site/html; every link within it is checked
	$(BIN)/python -m sphinx --quiet --nitpicky --fail-on-warning --keep-going --builder html --conf-dir docs/site . $(SITE)
	@echo "$(SITE)/docs/site/index.html"

man: $(ENGINE) ## write the manual page and the command reference from the command line's own help
	$(BIN)/python tools/command_reference.py

fmt: $(DEPS) ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## pin the Python packages that pyproject.toml asks for, and theirs
	$(PYTHON) tools/lock.py requirements-dev.lock

clean: ## remove what was built; results stay
	rm -rf .venv .venv-lowest target python/aqmlab/_native*.so
