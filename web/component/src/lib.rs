//! Plans a stack in a page: the embedded engine's own planning, asked of the planner component that is loaded beside it. It imports
//! that component's functions and nothing else.
#![cfg(target_family = "wasm")]

mod document;
mod planner;
mod values;

#[expect(clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit", "wit"],
        world: "bindery:preview/preview",
        generate_all,
        additional_derives: [serde::Serialize, serde::Deserialize],
    });
}

struct Preview;

impl bindings::Guest for Preview {
    fn plan(stack: String, state: Option<String>, config: Vec<(String, String)>) -> String {
        document::plan(&stack, state.as_deref(), &config)
    }
}

bindings::export!(Preview with_types_in bindings);
