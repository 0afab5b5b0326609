//! `/emulator/…`: where tests and people look at what is held, and set it.
//!
//! | request | what it does |
//! |---|---|
//! | `GET policies` | every policy by its target |
//! | `GET policies/TARGET` | one policy |
//! | `PUT policies/TARGET` | puts a policy in place, with a new etag and no rules |
//! | `DELETE policies/TARGET` | the target and its policy are gone |
//! | `GET requests`, `DELETE requests` | the log; empties it |
//! | `GET settings`, `PUT settings` | how the services behave |

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::server::World;

pub fn answer(world: &World, method: &str, path: &str, body: &[u8]) -> Answer {
    match try_answer(world, method, path, body) {
        Ok(body) => Answer::ok(body),
        Err((status, message)) => Answer {
            status,
            body: json!({ "error": message }),
            retry_after: None,
        },
    }
}

fn try_answer(world: &World, method: &str, path: &str, body: &[u8]) -> Result<Value, (u16, String)> {
    let wrong = |error: serde_json::Error| (400, error.to_string());
    let mut held = world.held();
    match (method, path.split_once('/').unwrap_or((path, ""))) {
        ("GET", ("policies", "")) => Ok(json!(held.policies.all())),
        ("GET", ("policies", target)) => Ok(json!(held.policies.get(target))),
        ("PUT", ("policies", target)) if !target.is_empty() => {
            let policy = serde_json::from_slice(body).map_err(wrong)?;
            held.settings.missing_targets.remove(target);
            let policy = held.policies.put(target, policy);
            world.keep(&held).map_err(|error| (500, error.to_string()))?;
            Ok(json!(policy))
        }
        ("DELETE", ("policies", target)) if !target.is_empty() => {
            held.policies.remove(target);
            held.settings.missing_targets.insert(target.to_string());
            world.keep(&held).map_err(|error| (500, error.to_string()))?;
            Ok(json!({}))
        }
        ("GET", ("requests", "")) => Ok(json!(held.requests)),
        ("DELETE", ("requests", "")) => {
            held.requests.clear();
            Ok(json!({}))
        }
        ("GET", ("settings", "")) => Ok(json!(held.settings)),
        ("PUT", ("settings", "")) => {
            let settings = serde_json::from_slice(body).map_err(wrong)?;
            held.set(settings);
            Ok(json!(held.settings))
        }
        _ => Err((
            404,
            format!("no `{method} /emulator/{path}`; there are policies, requests and settings"),
        )),
    }
}
