# Two commands for people and machines alike: `make demo` and `make test`. Everything happens inside this folder.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CODE   := install.py src tests benchmarks exercises terraform template docs
# torch and what its build with CUDA brings: install.py decides on the build, and each has checksums of its own.
UNLOCKED := torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc \
  nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse \
  nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx
# Several tests at a time, those of a file one after the other, because they may share a lab. In the order of their names the files
# with labs come before the unit tests, so that no processor waits for a lab at the end.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
AWS_LINT := $(VENV)/aws-lint
# Without compiled files each worker would compile all tests anew.
unexport PYTHONDONTWRITEBYTECODE
# A demo lives in a workspace of its own, so that it never meets the learner's.
DEMO   := $(CURDIR)/.demo

.PHONY: demo quick quick-types quick-tests test test-labs test-units test-one slow fuzz system-deps lint aws-lint iam-table format bench gpu-proof picture pictures docs screens schema golden lock clean

demo: $(VENV)/.local
	GPUCOURSE_WORKSPACE="$(DEMO)" sh demo.sh "$(BIN)/gpucourse"

# Before each commit, in a minute on two idle cores: the form, the types, who imports whom, and the unit tests of what needs no
# moto, no matplotlib, no torch, no compiler and no whole command. It installs Python packages only.
NOT_QUICK := aws emulator exercises figures judge labs learning
quick: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory --jobs=2 quick-types quick-tests

quick-types:
	$(BIN)/mypy src

quick-tests:
	$(PYTEST) -n logical -q -m "not system and not slow" $(NOT_QUICK:%=--ignore=tests/unit/%) tests/unit

# Every promise once, by the cheapest means that still uses the real part. Two runs of pytest side by side: while the first waits
# for labs, Terraform and SSH, the second computes, with what the first leaves of the processors (nice). Each collects its own tests
# only. What compiles is in the first, which keeps what it has compiled for all its tests: its first file compiles the CUDA emulator.
WITH_LABS := tests/unit/cli/test_cuda.py tests/contract tests/fuzz tests/system \
  tests/unit/exercises/emulator tests/unit/exercises/judges
# With PYTEST_ARGS="-k trust", one of them may have no test to run: pytest then exits with 5 (and so do both, if no
# test has that name).
OR_NONE = $(if $(PYTEST_ARGS),|| [ $$? = 5 ])
test: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-labs test-units

test-labs:
	$(PYTEST) -m "not slow" $(WITH_LABS) $(PYTEST_ARGS) $(OR_NONE)

test-units:
	nice $(PYTEST) -n logical -m "not slow" $(WITH_LABS:%=--ignore=%) tests $(PYTEST_ARGS) $(OR_NONE)

# Some of them, on all processors: make test-one T=tests/unit/launch, or T="tests/system/test_hosts.py -k trust".
T ?= tests/unit
test-one: $(VENV)/.dev
	$(PYTEST) $(T)

# The other tests: those that look a second time at what `make test` looks at once, and ten minutes of random input. The files with
# the most tests begin first: the judges and the versions of parts take minutes.
slow: $(VENV)/.kernels
	FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(PYTEST) --loadscope-reorder -m slow $(PYTEST_ARGS)

# Input from outside bent at random, for ten minutes or FUZZ_SECONDS. What breaks something is kept in tests/data/fuzz.
fuzz: $(VENV)/.dev
	FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(BIN)/python -m pytest -m fuzz tests/fuzz $(PYTEST_ARGS)

# The Debian packages that tests use (OpenSSH, Slurm, Chromium, shells), by apt: as root, or by a sudo that asks for no password.
# Nothing else calls it. A test whose package is missing skips with the reason.
system-deps:
	sh tests/system-parts.sh

lint: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/gpucourse dev check
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	sh tests/shell-lint.sh

# The stacks by checkov, the file that sets an account up by checkov and cfn-lint, the policy by parliament (which is older than one of
# its actions): in an environment of their own, for they bring a hundred packages.
aws-lint: $(AWS_LINT)/.ready $(VENV)/.dev
	$(AWS_LINT)/bin/checkov --skip-download --config-file terraform/.checkov.yaml --directory terraform
	$(BIN)/gpucourse doctor --setup > $(AWS_LINT)/account.json
	$(AWS_LINT)/bin/cfn-lint $(AWS_LINT)/account.json
	$(AWS_LINT)/bin/checkov --skip-download --framework cloudformation --quiet --compact --file $(AWS_LINT)/account.json
	$(BIN)/gpucourse doctor --policy | grep -v freetier:GetAccountPlanState | $(AWS_LINT)/bin/parliament --config tests/parliament.yaml

# What IAM looks at for each action of the policy, for the tests: after the policy names another action.
iam-table: $(AWS_LINT)/.ready
	$(AWS_LINT)/bin/python tests/iam_table.py

format: $(VENV)/.dev
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# Every exercise's GPU branch on the card of this computer, in one table; without a card it says so in every row.
gpu-proof: $(VENV)/.local
	$(BIN)/python -m benchmarks gpu

# The README's moving picture, a session from deploy to destroy; then the page (open) in Chromium, for docs/page.md.
picture: $(VENV)/.dev
	$(BIN)/python -m docs.session
	$(BIN)/python -m tests.page_pictures

# The pictures of the lessons that follow data or code in the repository; the others are SVG files to edit by hand.
pictures: $(VENV)/.dev
	$(BIN)/python -m docs.pictures.draw

# The documentation as a site in build/site: spelling, links, anchors, every key of the YAML files, and every screen of the
# walkthrough and of the tutorial for authors as it looks now.
docs: $(VENV)/.docs
	$(BIN)/codespell
	$(BIN)/python -m docs.manifest_reference
	$(BIN)/python -m docs.screens
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# The screens of the walkthrough and of the tutorial, taken again: look at the difference first.
screens: $(VENV)/.local
	$(BIN)/python -m docs.screens --write

schema: $(VENV)/.dev
	$(BIN)/gpucourse dev schema
	$(BIN)/python -m gpucourse.cli.schema > docs/json.schema.json
	$(BIN)/python -m docs.manifest_reference --write

# What tests compare with (batch files, cost table, schemas), as the program writes it now: look at the difference first.
golden: $(VENV)/.dev
	REWRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/unit/launch/test_sbatch.py
	$(BIN)/python -m tests.cost_table --write
	$(BIN)/gpucourse dev schema
	$(BIN)/python -m docs.manifest_reference --write

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpucourse needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.local: $(BIN)/python pyproject.toml constraints.txt requirements.lock install.py
	$(BIN)/python install.py local
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt requirements.lock install.py
	$(BIN)/python install.py local,dev
	touch $(VENV)/.local $@

$(AWS_LINT)/.ready: $(BIN)/python requirements-aws-lint.txt
	$(PYTHON) -m venv $(AWS_LINT)
	$(AWS_LINT)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-aws-lint.txt
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python install.py local,dev,docs
	touch $@

# Triton, which the tests of module 5's kernels skip without. What is named in this file must not be missing then: tests/parts.py.
$(VENV)/.kernels: $(VENV)/.dev requirements-kernels.lock
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps --requirement requirements-kernels.lock \
	  && echo triton > $@ || echo "could not install triton; the tests that need it will skip"

# Newest versions with their checksums, for every system and Python that is promised. Needs uv.
lock:
	printf 'hatchling\neditables\n' | uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --constraint constraints.txt \
	  $(addprefix --no-emit-package ,$(UNLOCKED)) --extra local --output-file requirements.lock pyproject.toml -
	$(PYTHON) terraform/modules/node/packages/lock.py

clean:
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
