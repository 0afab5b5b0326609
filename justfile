# The daily recipes. `just --list` shows them.

# Builds everything, the components included.
build:
    cargo build --workspace

# The README's test command.
test:
    cargo test --workspace

# Quick: the rules alone, natively.
test-rules:
    cargo test -p bindery-policy -p bindery-provider

# What CI checks, the tests aside.
lint:
    cargo fmt --all --check
    cargo fmt --check --manifest-path fuzz/Cargo.toml
    cargo clippy --workspace --all-targets -- -D warnings

# Records anew what the binary prints: in the goldens, the docs and the README. Look at the difference before it is kept.
bless:
    BLESS=1 cargo test -p bindery --test cli golden
    BLESS=1 cargo test -p bindery --test cli plans

# The page that shows a plan, at a local address; the tests of it and of its package are `npm test` in `web`.
web:
    cd web && npm install --no-save && npm run dev

# Builds the real engine and fetches the published SDKs, once, into a cache outside of the checkout.
engine:
    tests/engine/build

# Whole programs under the real engine, and both engines at once under every fault.
test-engine: engine
    cargo test --workspace --test engine --test faults -- --ignored

# Many processes of both engines on the same targets under every fault, for so long.
soak seconds="3600": engine
    SOAK_SECONDS={{seconds}} cargo test --workspace --test faults -- --include-ignored --nocapture

# Every fuzz target for so long. What is found stays in fuzz/found and fuzz/artifacts.
fuzz seconds="300":
    fuzz/run -max_total_time={{seconds}}

# What committing together is worth, how a stack grows from 10 to 10,000 resources, and what the parts of a commit take: the
# tables of docs/performance.md.
bench:
    cargo bench -p bindery-policy --bench policy
    cargo bench -p bindery
    cargo build --release --workspace
    cargo bench -p bindery-tests --bench host
    cd web && npm install --no-save && npm run bench

# The whole of CI.
ci:
    .ci/run

# The example against emulated services.
demo:
    cargo run --release -- up examples/grants.yaml --emulate --yes

# The emulator on its own.
emulator *ARGS:
    cargo run --release -- emulator {{ARGS}}
