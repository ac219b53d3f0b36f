# The two commands of the README are `make run` and `make test`; both may be repeated.
NODE := node_modules/.bin/node
# Where set-up puts npm on a machine that has none.
export PATH := $(PATH):/opt/svc/bin
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

.PHONY: run
run: setup ## Set up, start the server and run Python in a first sandbox
	@scripts/run.sh

.PHONY: test
test: ## Set up, check the code and run every test: make test SHARD=2/4 for the second of four parts
	@scripts/setup.sh --for-tests
	@$(MAKE) --no-print-directory check
	@scripts/as-root.sh $(NODE) scripts/run-tests.ts $(if $(SHARD),--shard $(SHARD))

.PHONY: test-changed
test-changed: ## Run the tests nearest to what was changed, some two minutes: make test-changed BASE=main
	@scripts/as-root.sh $(NODE) scripts/run-tests.ts --changed $(or $(BASE),HEAD)

.PHONY: setup
setup: ## Install what is missing, build all programs and the dashboard, examine this host
	@scripts/setup.sh

.PHONY: install
install: setup ## Put svc on PATH, with completion for shells: make install PREFIX=/usr/local
	@scripts/as-root.sh ./svc install --prefix $(or $(PREFIX),/usr/local)

.PHONY: build
build: ## Build svc-init, svc-host, the CLI, the server, the engine and the dashboard
	@$(MAKE) --no-print-directory -s -C packages/init
	@$(MAKE) --no-print-directory -s -C packages/host
	@$(NODE) scripts/build-archive-program.ts
	@$(NODE) scripts/build-programs.ts
	@$(NODE) scripts/build-dashboard.ts

.PHONY: packages
packages: ## Make dist/: @svc/sdk, @svc/cli and adapters for npm, svc-sdk for Python, to install elsewhere
	@$(NODE) scripts/build-packages.ts

.PHONY: check
check: ## Format, lint, types, dead code, generated files, layers, C for both architectures
	@npm run --silent check

.PHONY: house
house: ## Show lines, words that are to go, circles of imports, the time of the suite: make house LIST=1 says where the words are
	@$(NODE) scripts/house.ts $(if $(LIST),--list)

.PHONY: format
format: ## Format the code
	@npm run --silent format

.PHONY: generate
generate: ## Write the generated reference documents anew
	@$(NODE) scripts/generate.ts

.PHONY: bench
bench: setup ## Measure the promises of docs/promises.md; writes bench/results.json
	@scripts/as-root.sh $(NODE) bench/run.ts

.PHONY: pictures
pictures: setup ## Take pictures of every page of the dashboard: make pictures FOLDER=/tmp/pictures
	@scripts/as-root.sh $(NODE) test/dashboard/take-pictures.ts $(FOLDER)

.PHONY: bench-peers
bench-peers: setup ## Compare with Docker and Podman in one run; writes the table of docs/promises.md and the picture of README.md
	@scripts/install-peers.sh
	@scripts/as-root.sh $(NODE) bench/peers.ts

.PHONY: bench-scale
bench-scale: setup ## Measure how cost grows with the number of sandboxes; writes the table of docs/promises.md and its picture
	@scripts/as-root.sh $(NODE) bench/scale.ts

.PHONY: soak
soak: setup ## Kill processes under load for a long time: make soak MINUTES=60 (CALM=1: load alone, to watch memory)
	@scripts/as-root.sh $(NODE) test/faults/soak.ts $(or $(MINUTES),10) $(SEED) $(if $(CALM),--calm)

.PHONY: fuzz
fuzz: setup ## Send mutated frames and requests to svc-init and the server: make fuzz FRAMES=1000000 REQUESTS=50000 PACKETS=20000 SEED=1
	@SVC_FUZZ_FRAMES=$(or $(FRAMES),1000000) SVC_FUZZ_REQUESTS=$(or $(REQUESTS),50000) \
		SVC_FUZZ_SSH_PACKETS=$(or $(PACKETS),20000) SVC_FUZZ_SEED=$(SEED) \
		scripts/as-root.sh $(NODE) --test --test-concurrency=1 packages/init/test/fuzz.test.ts \
		packages/server/src/transports/fuzz.test.ts packages/server/src/transports/channel/fuzz.test.ts \
		packages/server/src/transports/ssh/fuzz.test.ts

.PHONY: runc
runc: ## Fetch a runc with all known fixes, also when one is there
	@scripts/install-runc.sh --force

.PHONY: runsc
runsc: ## Install runsc anew: make runsc FROM=source builds a newer one than Debian's
	@SVC_RUNSC_FROM=$(FROM) scripts/install-runsc.sh --force

.PHONY: clean
clean: ## Remove what the build made (not node_modules, not data)
	@rm -rf packages/init/build packages/host/build packages/engine/build packages/cli/build packages/server/build packages/dashboard/build
