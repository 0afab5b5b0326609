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
    cargo clippy --workspace --all-targets -- -D warnings

# Records anew what the binary prints: in the goldens, the docs and the README. Look at the difference before it is kept.
bless:
    BLESS=1 cargo test -p bindery --test cli golden

# Builds the real engine and fetches the published SDKs, once, into a cache outside of the checkout.
engine:
    tests/engine/build

# Whole programs under the real engine.
test-engine: engine
    cargo test --workspace --test engine -- --ignored

# How planning and applying grow from 10 to 10,000 resources.
bench:
    cargo bench -p bindery

# The whole of CI.
ci:
    .ci/run

# The example against emulated services.
demo:
    cargo run --release -- up examples/grants.yaml --emulate --yes

# The emulator on its own.
emulator *ARGS:
    cargo run --release -- emulator {{ARGS}}
