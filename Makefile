# make notebooks   run every notebook on the shipped sample   (PROFILE=public ONLY=03,09 FORCE=1)
#                  with models of the hub                     (PROFILE=hub, MODELS="bertscore:FacebookAI/roberta-large unieval"; DRY=1 only tells)
# make test        run the test suite
# make lab         open JupyterLab
# make judge       keep a judge running on this machine        (GGUF=path/to/file.gguf)
# make report      score your own dialogs                     (DIALOGS=path/to/file; DRY=1 only reads, OUT=turns.parquet)
#                  ask a judge as well                      (JUDGE=packaged, or a model at OPENAI_BASE_URL; JUDGED=200)
#                  let encoder and EnDex read more          (READ=100000; 10,000 replies at most by default)
#                  compare two versions                     (A=old B=new FAIL_IF="b worse by .2" FORMAT=json)
#                  draw it beside earlier releases          (HISTORY=folder LABEL=v1.2)
#                  have people rate dialogs drawn at random  (RATE=40 writes a sheet, RATINGS=sheet.xlsx brings it back)
# make bench       time ours beside a peer                    (ONLY=correlation)
# make site        render the notebooks as pages that need no network, in build/site
# make slides      one deck for each notebook, in build/slides     (needs npm)

PYTHON  ?= python3.11 python3.12 python3.13 python3.14 python3
PROFILE ?= sample
ONLY    ?=
FORCE   ?=
BIN     := .venv/bin
SITE    := .venv-site/bin

.DEFAULT_GOAL := help
.PHONY: help notebooks test test-slow lab judge report bench site slides lint lock clean

help:
	@sed -n 's/^# //p' Makefile

# The first Python of the right age that can make environments (Debian's alone cannot), else uv.
$(BIN)/python $(SITE)/python:
	@for python in $(PYTHON); do \
	  if $$python -c 'import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
	    2>/dev/null; then exec $$python -m venv $(@:/bin/python=); fi; \
	done; \
	if command -v uv >/dev/null; then exec uv venv --quiet --seed --python '>=3.11,<3.15' $(@:/bin/python=); fi; \
	echo "No Python 3.11 to 3.14 with venv is here. Install one (on Debian also python3-venv),"; \
	echo "or uv, or name one: make PYTHON=/path/to/python3.13"; exit 1

# torch first and by itself: its CPU and CUDA builds share a version, so their hashes differ.
.venv/users: requirements.lock requirements-no-deps.lock pyproject.toml | $(BIN)/python
	@echo "Filling the environment in .venv: a few minutes, about 3 GB (more with CUDA)."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-no-deps.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

.venv/developers: .venv/users requirements-dev.lock
	@echo "Adding what the tests compare with: about a minute."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	touch $@

notebooks: .venv/users
	$(BIN)/python -m lib.notebook_runs --profile $(PROFILE) $(if $(ONLY),--only $(ONLY)) $(if $(FORCE),--force) \
	  $(if $(MODELS),--models "$(MODELS)") $(if $(DRY),--dry)

test: .venv/developers
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: .venv/developers .venv-site/ready
	$(BIN)/python -m pytest -m slow

lab: .venv/users
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

judge: .venv/users
	$(BIN)/python -m lib.cpdscore.local $(if $(GGUF),"$(GGUF)")

# What the reader says that it guessed is told to it in the same words.
GIVEN = $(foreach guess,KIND BOT ENCODING DELIMITER DECIMAL SHEET SPLIT SPEAKERS MAX_MB,$(if $($(guess)),--override "$(guess)=$($(guess))"))
report: .venv/users
	@test -n "$(DIALOGS)$(and $(A),$(B))" || { echo "say which dialogs: make report DIALOGS=path, or A=old B=new"; exit 1; }
	@$(BIN)/python -m lib.report $(if $(A),"$(A)" "$(B)","$(DIALOGS)") $(GIVEN) $(if $(filter command,$(firstword $(origin COLUMNS))),--columns $(COLUMNS)) \
	  $(if $(DRY),--dry) $(if $(OUT),--turns "$(OUT)") $(if $(PAGE),--out "$(PAGE)") \
	  $(if $(READ),--read $(READ)) $(if $(JUDGE),--judge "$(JUDGE)") $(if $(JUDGED),--judged $(JUDGED)) \
	  $(if $(RATE),--rate $(RATE)) $(if $(SCALE),--scale="$(SCALE)") $(if $(PREDICTOR),--predictor "$(PREDICTOR)") \
	  $(if $(RATINGS),--ratings "$(RATINGS)") $(if $(KEY),--key "$(KEY)") $(if $(DRAWN),--drawn "$(DRAWN)") \
	  $(if $(METRICS),--metrics "$(METRICS)") $(if $(MODELS),--models "$(MODELS)") $(if $(filter 0,$(TEXTS)),--without-texts) $(if $(YES),--yes) \
	  $(if $(FORMAT),--format $(FORMAT)) $(if $(FAIL_IF),--fail-if "$(FAIL_IF)") \
	  $(if $(HISTORY),--history "$(HISTORY)") $(if $(LABEL),--label "$(LABEL)")

bench: .venv/developers
	@for script in tests/bench/bench_$(or $(ONLY),*).py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# An environment of its own: 250 MB, and no torch.
.venv-site/ready: requirements-site.lock | $(SITE)/python
	@echo "Filling the environment in .venv-site: about a minute."
	$(SITE)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-site.lock
	touch $@

site: .venv-site/ready
	$(SITE)/sphinx-build -q -W --keep-going -c docs . build/site
	@echo "Open build/site/index.html in a browser."

slides: .venv/users
	$(BIN)/python scripts/make_slides.py

lint: .venv/developers
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

# Needs uv. The CUDA packages come with torch itself, in the versions that torch names.
CUDA := cuda-bindings cuda-pathfinder cuda-toolkit triton nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc \
        nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver \
        nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-package torch $(addprefix --no-emit-package ,$(CUDA)) pyproject.toml
lock:
	$(LOCK) -o requirements.lock
	$(LOCK) --extra dev -c requirements.lock -o requirements-dev.lock
	$(filter-out pyproject.toml,$(LOCK)) --group site -o requirements-site.lock

clean:
	rm -rf build .pytest_cache .hypothesis .ruff_cache
