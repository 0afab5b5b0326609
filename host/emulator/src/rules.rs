//! What makes a written policy wrong. Each rule answers as the services do; some of them the services leave to the client.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::answer::ServiceError;
use crate::route::Service;

type Checked<T> = Result<T, ServiceError>;

const POLICY_FIELDS: [&str; 5] = ["version", "bindings", "etag", "auditConfigs", "iamOwned"];
const BINDING_FIELDS: [&str; 4] = ["role", "members", "condition", "bindingId"];
const CONDITION_FIELDS: [&str; 4] = ["title", "description", "expression", "location"];
const MEMBER_TYPES: [&str; 11] = [
    "user",
    "serviceAccount",
    "group",
    "domain",
    "projectOwner",
    "projectEditor",
    "projectViewer",
    "principal",
    "principalSet",
    "principalHierarchy",
    "deleted",
];

/// A request to set a policy, found right but for its etag's being the current one.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRequest {
    /// The policy.
    pub policy: Map<String, Value>,
    /// Its etag, as it was written.
    pub etag: String,
}

/// Checks the query of a read: nothing but the version, by this service's own name for it.
pub fn requested_version(service: Service, query: &str) -> Checked<u8> {
    let mut version = 0;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != service.version_parameter() {
            return Err(ServiceError::invalid(format!(
                "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. Field '{name}' could \
                 not be found in request message."
            )));
        }
        version = match value {
            "0" => 0,
            "1" => 1,
            "3" => 3,
            other => {
                return Err(ServiceError::invalid(format!(
                    "Requested policy version ({other}) is invalid."
                )));
            }
        };
    }
    Ok(version)
}

/// Checks the body of a write against the policy that it would replace.
pub fn set_request(service: Service, body: &[u8], current: &Map<String, Value>) -> Checked<SetRequest> {
    let Ok(Value::Object(mut body)) = serde_json::from_slice(body) else {
        return Err(ServiceError::invalid(
            "Invalid JSON payload received. Expected an object.",
        ));
    };
    let known: &[&str] = match service {
        // The flattened `bindings` and `etag` are deprecated: a careful client does not send them.
        Service::Compute => &["policy"],
        Service::Datamigration | Service::Networkservices => &["policy", "updateMask"],
    };
    no_unknown("", &body, known, &Map::new())?;
    if body.get("updateMask").is_some_and(|mask| !mask.is_string()) {
        return Err(ServiceError::invalid("Invalid value at 'update_mask' (TYPE_STRING)."));
    }
    let Some(Value::Object(policy)) = body.remove("policy") else {
        return Err(ServiceError::invalid(
            "Invalid value at 'policy': a policy is required.",
        ));
    };
    no_unknown("policy", &policy, &POLICY_FIELDS, current)?;
    let etag = etag(&policy)?;
    let bindings = bindings(&policy, current)?;
    let has_conditions = |policy: &Map<String, Value>| {
        let bindings = policy.get("bindings").and_then(Value::as_array).into_iter().flatten();
        bindings
            .clone()
            .any(|binding| binding.get("condition").is_some_and(|condition| !condition.is_null()))
    };
    version(&policy, has_conditions(&policy) || has_conditions(current))?;
    limits(&bindings, exempted(&policy)?)?;
    Ok(SetRequest { policy, etag })
}

fn no_unknown(at: &str, object: &Map<String, Value>, known: &[&str], current: &Map<String, Value>) -> Checked<()> {
    // Fields that this emulator does not know, and that the policy has, are the service's newer ones.
    let unknown = object
        .keys()
        .find(|name| !known.contains(&name.as_str()) && !current.contains_key(*name));
    match unknown {
        None => Ok(()),
        Some(name) => Err(ServiceError::invalid(format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
        ))),
    }
}

fn etag(policy: &Map<String, Value>) -> Checked<String> {
    let Some(etag) = policy
        .get("etag")
        .and_then(Value::as_str)
        .filter(|etag| !etag.is_empty())
    else {
        return Err(ServiceError::invalid(
            "The policy has no etag: it would overwrite concurrent changes.",
        ));
    };
    if STANDARD.decode(etag).is_err() {
        return Err(ServiceError::invalid(format!(
            "Invalid value at 'policy.etag' (TYPE_BYTES), Base64 decoding failed for \"{etag}\""
        )));
    }
    Ok(etag.to_string())
}

/// One binding's parts.
struct Binding<'p> {
    role: &'p str,
    members: Vec<&'p str>,
    condition: String,
}

fn bindings<'p>(policy: &'p Map<String, Value>, current: &Map<String, Value>) -> Checked<Vec<Binding<'p>>> {
    let list = match policy.get("bindings") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => {
            return Err(ServiceError::invalid(
                "Invalid value at 'policy.bindings': expected a list.",
            ));
        }
    };
    // Newer fields of any binding that is there.
    let mut newer = Map::new();
    for binding in current.get("bindings").and_then(Value::as_array).into_iter().flatten() {
        newer.extend(binding.as_object().cloned().unwrap_or_default());
    }
    list.iter().map(|binding| self::binding(binding, &newer)).collect()
}

fn binding<'p>(binding: &'p Value, newer: &Map<String, Value>) -> Checked<Binding<'p>> {
    let Some(fields) = binding.as_object() else {
        return Err(ServiceError::invalid(
            "Invalid value at 'policy.bindings': expected objects.",
        ));
    };
    no_unknown("policy.bindings", fields, &BINDING_FIELDS, newer)?;
    let role = fields.get("role").and_then(Value::as_str).unwrap_or_default();
    if role.contains("_withcond_") {
        return Err(ServiceError::invalid(
            "Policy cannot contain both conditions and condition hashes.",
        ));
    }
    if !is_role(role) {
        return Err(ServiceError::invalid(format!(
            "Role ({role}) does not exist in the resource's hierarchy."
        )));
    }
    let members = fields.get("members").and_then(Value::as_array);
    if members.is_some_and(|members| !members.iter().all(Value::is_string)) {
        return Err(ServiceError::invalid(
            "Invalid value at 'policy.bindings.members' (TYPE_STRING).",
        ));
    }
    let members: Option<Vec<&str>> = members.map(|members| members.iter().filter_map(Value::as_str).collect());
    let members = members.filter(|members| !members.is_empty()).ok_or_else(|| {
        ServiceError::invalid(format!(
            "Binding of role {role} has no members: each must contain at least one principal."
        ))
    })?;
    for member in &members {
        check_member(member)?;
    }
    let condition = match fields.get("condition") {
        None | Some(Value::Null) => String::new(),
        Some(Value::Object(condition)) => {
            no_unknown("policy.bindings.condition", condition, &CONDITION_FIELDS, &Map::new())?;
            let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            if text("expression").is_empty() || text("title").is_empty() {
                return Err(ServiceError::invalid("Condition must have an expression and a title."));
            }
            if matches!(role, "roles/owner" | "roles/editor" | "roles/viewer") {
                return Err(ServiceError::invalid(format!(
                    "Conditions are not supported on the basic role {role}."
                )));
            }
            format!("{:?}", (text("title"), text("description"), text("expression")))
        }
        Some(_) => return Err(ServiceError::invalid("Invalid value at 'policy.bindings.condition'.")),
    };
    Ok(Binding {
        role,
        members,
        condition,
    })
}

fn is_role(role: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    match role.split('/').collect::<Vec<_>>().as_slice() {
        ["roles", name] => is_word(name),
        ["projects" | "organizations", parent, "roles", name] => !parent.is_empty() && is_word(name),
        _ => false,
    }
}

fn check_member(member: &str) -> Checked<()> {
    let is_well_formed = match member.split_once(':') {
        None => matches!(member, "allUsers" | "allAuthenticatedUsers"),
        Some((kind, value)) => MEMBER_TYPES.contains(&kind) && !value.is_empty() && !value.contains(' '),
    };
    if is_well_formed {
        return Ok(());
    }
    Err(ServiceError::invalid(format!(
        "Policy members must be of the form \"<type>:<value>\": {member}."
    )))
}

fn version(policy: &Map<String, Value>, has_conditions: bool) -> Checked<()> {
    let version = policy.get("version").map_or(Some(0), Value::as_u64);
    match version {
        Some(3) => Ok(()),
        Some(version @ (0 | 1)) if has_conditions => Err(ServiceError::invalid(format!(
            "Requested policy version ({version}) cannot be less than the existing policy version (3). For more \
             information, please refer to https://cloud.google.com/iam/docs/policies#versions."
        ))),
        Some(0 | 1) => Ok(()),
        _ => Err(ServiceError::invalid(
            "Invalid value at 'policy.version': expected 0, 1 or 3.",
        )),
    }
}

/// How many principals the audit configuration names.
fn exempted(policy: &Map<String, Value>) -> Checked<usize> {
    let configs = match policy.get("auditConfigs") {
        None | Some(Value::Null) => return Ok(0),
        Some(Value::Array(configs)) => configs,
        Some(_) => {
            return Err(ServiceError::invalid(
                "Invalid value at 'policy.auditConfigs': expected a list.",
            ));
        }
    };
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let logs = configs.iter().flat_map(|config| list(config, "auditLogConfigs"));
    Ok(logs.map(|log| list(&log, "exemptedMembers").len()).sum())
}

fn limits(bindings: &[Binding<'_>], exempted: usize) -> Checked<()> {
    let members = || bindings.iter().flat_map(|binding| binding.members.iter());
    let count = members().count() + exempted;
    if count > 1_500 {
        return Err(ServiceError::invalid(format!(
            "The number of members in the policy ({},{:03}) is larger than the maximum allowed size 1,500.",
            count / 1_000,
            count % 1_000
        )));
    }
    let groups: BTreeSet<String> = members()
        .filter(|member| member.starts_with("group:"))
        .map(|member| member.to_lowercase())
        .collect();
    let domains = members().filter(|member| member.starts_with("domain:")).count();
    if groups.len() + domains > 250 {
        return Err(ServiceError::invalid(
            "The number of groups and domains in the policy is larger than 250.",
        ));
    }
    let mut conditions: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for binding in bindings {
        for member in &binding.members {
            conditions
                .entry((binding.role, member.to_lowercase()))
                .or_default()
                .insert(&binding.condition);
        }
    }
    if conditions.values().any(|conditions| conditions.len() > 20) {
        return Err(ServiceError::invalid(
            "More than 20 bindings differ only in their conditions.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(service: Service, body: Value, current: Value) -> Result<SetRequest, String> {
        let current = current.as_object().cloned().unwrap();
        set_request(service, body.to_string().as_bytes(), &current).map_err(|error| error.message)
    }

    fn binding(members: Value) -> Value {
        json!({"role": "roles/x", "members": members})
    }

    #[test]
    fn a_careful_write_passes_on_every_service() {
        let body = json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [binding(json!(["user:a@b.c"]))]}});
        for service in [Service::Compute, Service::Datamigration, Service::Networkservices] {
            assert_eq!(check(service, body.clone(), json!({})).unwrap().etag, "BwXA");
        }
    }

    #[test]
    fn every_careless_write_is_refused() {
        let conditional =
            json!({"role": "roles/x", "members": ["user:a@b.c"], "condition": {"title": "t", "expression": "true"}});
        for (body, word) in [
            (json!([]), "object"),
            (json!({"policy": {}, "updateMask": "bindings"}), "updateMask"),
            (json!({"policy": {}, "bindings": []}), "bindings"),
            (json!({}), "required"),
            (json!({"policy": {"version": 3}}), "no etag"),
            (json!({"policy": {"version": 3, "etag": "not base64!"}}), "Base64"),
            (json!({"policy": {"version": 2, "etag": "BwXA"}}), "version"),
            (
                json!({"policy": {"version": 1, "etag": "BwXA", "bindings": [conditional]}}),
                "version (1)",
            ),
            (
                json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [binding(json!([]))]}}),
                "at least one",
            ),
            (
                json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [binding(json!(["ann"]))]}}),
                "of the form",
            ),
            (
                json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [{"role": "x", "members": ["user:a@b.c"]}]}}),
                "Role",
            ),
            (
                json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [{"role": "roles/x_withcond_1", "members": ["user:a@b.c"]}]}}),
                "hashes",
            ),
            (
                json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [binding(json!(["user:a@b.c", 1]))]}}),
                "TYPE_STRING",
            ),
            (
                json!({"policy": {"version": 3, "etag": "BwXA", "surprise": 1}}),
                "surprise",
            ),
        ] {
            let message = check(Service::Compute, body.clone(), json!({})).unwrap_err();
            assert!(message.contains(word), "{body}: {message}");
        }
        let below = json!({"policy": {"version": 1, "etag": "BwXA"}});
        assert!(check(Service::Compute, below, json!({"bindings": [conditional]})).is_err());
    }

    #[test]
    fn a_newer_field_may_come_back_as_it_was() {
        let body = json!({"policy": {"version": 3, "etag": "BwXA", "future": 1}});
        assert!(check(Service::Compute, body, json!({"future": 1})).is_ok());
    }

    #[test]
    fn the_size_of_a_policy_is_limited() {
        let of = |count: usize, kind: &str| {
            let members: Vec<String> = (0..count).map(|n| format!("{kind}:n{n}@b.c")).collect();
            check(
                Service::Compute,
                json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [binding(json!(members))]}}),
                json!({}),
            )
        };
        assert!(of(1_500, "user").is_ok());
        assert!(of(1_501, "user").unwrap_err().contains("(1,501)"));
        assert!(of(251, "group").is_err());
        let members: Vec<String> = (0..1_500).map(|n| format!("user:n{n}@b.c")).collect();
        let audit = json!([{"auditLogConfigs": [{"exemptedMembers": ["user:z@b.c"]}]}]);
        let exempted = json!({"policy": {"version": 3, "etag": "BwXA", "bindings": [binding(json!(members))], "auditConfigs": audit}});
        assert!(
            check(Service::Compute, exempted, json!({}))
                .unwrap_err()
                .contains("(1,501)")
        );
    }

    #[test]
    fn each_service_has_its_own_name_for_the_version() {
        assert_eq!(
            requested_version(Service::Compute, "optionsRequestedPolicyVersion=3"),
            Ok(3)
        );
        assert_eq!(
            requested_version(Service::Datamigration, "options.requestedPolicyVersion=3"),
            Ok(3)
        );
        assert!(requested_version(Service::Compute, "options.requestedPolicyVersion=3").is_err());
        assert!(requested_version(Service::Networkservices, "optionsRequestedPolicyVersion=3").is_err());
        assert!(requested_version(Service::Compute, "optionsRequestedPolicyVersion=2").is_err());
    }
}
