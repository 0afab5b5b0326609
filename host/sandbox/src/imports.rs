//! What a component may import: HTTP, and the few interfaces that a language's standard library brings, which the host
//! answers with nothing. Anything else with a function or a resource in it is refused by name.

use thiserror::Error;
use wasmtime::Engine;
use wasmtime::component::types::{self, ComponentItem};

/// The interfaces that a component may import functions from, each in any 0.2 version.
pub const ALLOWED: [&str; 18] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure-seed",
];

/// Random numbers, which hash maps are seeded with.
const ALLOWED_RANDOM: [&str; 2] = ["wasi:random/insecure", "wasi:random/random"];

/// An import that is not answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the component imports `{0}`, which a provider does not get; it may import `wasi:http` and what a standard library \
     needs (`wasi:cli`, `wasi:clocks`, `wasi:io`, `wasi:random`)"
)]
pub struct ForbiddenImport(pub String);

/// Names every interface that functions or resources are imported from.
///
/// # Errors
/// When one of them is not answered.
pub fn check(engine: &Engine, component: &types::Component) -> Result<Vec<String>, ForbiddenImport> {
    let mut imported = Vec::new();
    for (name, import) in component.imports(engine) {
        if !needs_an_answer(engine, &import.ty) {
            continue;
        }
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        let is_allowed = ALLOWED.contains(&interface) || ALLOWED_RANDOM.contains(&interface);
        if !is_allowed || !version.starts_with("0.2.") {
            return Err(ForbiddenImport(name.to_string()));
        }
        imported.push(name.to_string());
    }
    Ok(imported)
}

/// Whether an import is more than types.
fn needs_an_answer(engine: &Engine, item: &ComponentItem) -> bool {
    match item {
        ComponentItem::Type(_) => false,
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .any(|(_, export)| needs_an_answer(engine, &export.ty)),
        _ => true,
    }
}
