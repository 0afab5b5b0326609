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

# The whole of CI.
ci:
    .ci/run

# The example against emulated services.
demo:
    cargo run --release -- up examples/grants.yaml --emulate --yes

# The emulator on its own.
emulator *ARGS:
    cargo run --release -- emulator {{ARGS}}
