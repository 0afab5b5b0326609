//! What is held: a policy for each target, with an etag that every write changes.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Kind, ServiceError};
use crate::fault::Faults;
use crate::route::{Route, Service, Verb};
use crate::rules;

/// How the services behave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Targets that do not exist. All others do.
    pub missing_targets: BTreeSet<String>,
    /// Targets whose policy the caller may not read or write.
    pub denied_targets: BTreeSet<String>,
    /// Identities that the services refuse, as `user:EMAIL`.
    pub missing_identities: BTreeSet<String>,
    /// One request that is never answered.
    pub hold: Option<Hold>,
}

/// A request that is never answered, so that its caller can be stopped just then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// Which one, counted from 1 since this was set.
    pub request: u64,
    /// Whether it is done all the same.
    pub done: bool,
}

/// Every target's policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Policies {
    /// How many etags were given.
    etags: u64,
    policies: BTreeMap<String, Map<String, Value>>,
}

impl Policies {
    /// Every policy by its target.
    pub fn all(&self) -> &BTreeMap<String, Map<String, Value>> {
        &self.policies
    }

    /// The policy of a target, as a version 3 reader sees it.
    pub fn get(&self, target: &str) -> Map<String, Value> {
        let mut policy = self.policies.get(target).cloned().unwrap_or_default();
        // A policy that was never set has this etag.
        policy.entry("etag").or_insert_with(|| json!("ACAB"));
        policy
    }

    /// Puts a policy in place as somebody else would: with a new etag, and no rules.
    pub fn put(&mut self, target: &str, mut policy: Map<String, Value>) -> Map<String, Value> {
        policy.insert("etag".to_string(), json!(self.next_etag()));
        self.policies.insert(target.to_string(), policy.clone());
        policy
    }

    /// Forgets a target's policy.
    pub fn remove(&mut self, target: &str) {
        self.policies.remove(target);
    }

    /// Eight bytes that no other write of this emulator has.
    fn next_etag(&mut self) -> String {
        self.etags += 1;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&(0x0706_0000_0000_0000 | self.etags).to_be_bytes());
        STANDARD.encode(bytes)
    }

    /// Answers a request as the service does.
    pub fn answer(&mut self, settings: &Settings, route: &Route, query: &str, body: &[u8]) -> Answer {
        self.try_answer(settings, route, query, body).map_or_else(
            |error| Answer::error(route.service, &error),
            |policy| Answer::ok(Value::Object(policy)),
        )
    }

    fn try_answer(
        &mut self,
        settings: &Settings,
        route: &Route,
        query: &str,
        body: &[u8],
    ) -> Result<Map<String, Value>, ServiceError> {
        if settings.denied_targets.contains(&route.target) {
            return Err(ServiceError::denied(route));
        }
        match route.verb {
            Verb::Get => {
                let version = rules::requested_version(route.service, query)?;
                self.exists(settings, route)?;
                Ok(as_version(self.get(&route.target), version))
            }
            Verb::Set => {
                if !query.is_empty() {
                    return Err(ServiceError::invalid(format!(
                        "Unknown name \"{query}\": Cannot bind query parameter."
                    )));
                }
                self.exists(settings, route)?;
                let current = self.get(&route.target);
                let request = rules::set_request(route.service, body, &current)?;
                if current.get("etag").and_then(Value::as_str) != Some(request.etag.as_str()) {
                    return Err(ServiceError::conflict());
                }
                refuse_missing(settings, &request.policy)?;
                Ok(self.put(&route.target, stored(route.service, request.policy, current)))
            }
        }
    }

    fn exists(&self, settings: &Settings, route: &Route) -> Result<(), ServiceError> {
        if settings.missing_targets.contains(&route.target) {
            Err(ServiceError::no_target(route))
        } else {
            Ok(())
        }
    }
}

/// Compute takes the whole policy. The others' default update mask is `bindings, etag`: what else the policy holds stays.
fn stored(service: Service, policy: Map<String, Value>, current: Map<String, Value>) -> Map<String, Value> {
    if service == Service::Compute {
        return policy;
    }
    let mut stored = current;
    match policy.get("bindings") {
        Some(bindings) => stored.insert("bindings".to_string(), bindings.clone()),
        None => stored.shift_remove("bindings"),
    };
    stored.insert("version".to_string(), json!(3));
    stored
}

/// What a reader of an older version sees: conditions are hidden in the role's name.
fn as_version(mut policy: Map<String, Value>, version: u8) -> Map<String, Value> {
    let mut has_conditions = false;
    for binding in policy
        .get_mut("bindings")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(fields) = binding
            .as_object_mut()
            .filter(|fields| fields.contains_key("condition"))
        else {
            continue;
        };
        has_conditions = true;
        if version < 3 {
            fields.shift_remove("condition");
            if let Some(Value::String(role)) = fields.get_mut("role") {
                role.push_str("_withcond_0123456789abcdef0123");
            }
        }
    }
    policy.insert(
        "version".to_string(),
        json!(if has_conditions && version == 3 { 3 } else { 1 }),
    );
    policy
}

fn refuse_missing(settings: &Settings, policy: &Map<String, Value>) -> Result<(), ServiceError> {
    let bindings = policy.get("bindings").and_then(Value::as_array).into_iter().flatten();
    let mut members =
        bindings.flat_map(|binding| binding.get("members").and_then(Value::as_array).into_iter().flatten());
    match members.find_map(|member| {
        member
            .as_str()
            .filter(|member| settings.missing_identities.contains(*member))
    }) {
        None => Ok(()),
        Some(member) => {
            let (kind, name) = member.split_once(':').unwrap_or(("User", member));
            let kind = match kind {
                "serviceAccount" => "Service account",
                "group" => "Group",
                _ => "User",
            };
            Err(ServiceError::new(
                Kind::InvalidArgument,
                format!("{kind} {name} does not exist."),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(verb: &str) -> Route {
        let method = if verb == "getIamPolicy" { "GET" } else { "POST" };
        Route::of(
            method,
            &format!("/compute/v1/projects/p/global/backendBuckets/b/{verb}"),
        )
        .unwrap()
    }

    const QUERY: &str = "optionsRequestedPolicyVersion=3";

    fn get(policies: &mut Policies, query: &str) -> Value {
        policies
            .answer(&Settings::default(), &route("getIamPolicy"), query, b"")
            .body
    }

    fn set(policies: &mut Policies, policy: &Value) -> Answer {
        policies.answer(
            &Settings::default(),
            &route("setIamPolicy"),
            "",
            json!({ "policy": policy }).to_string().as_bytes(),
        )
    }

    #[test]
    fn a_policy_that_was_never_set_is_empty_and_has_an_etag() {
        assert_eq!(
            get(&mut Policies::default(), QUERY),
            json!({"etag": "ACAB", "version": 1})
        );
    }

    #[test]
    fn every_write_changes_the_etag_and_an_old_one_conflicts() {
        let mut policies = Policies::default();
        let policy =
            json!({"version": 3, "etag": "ACAB", "bindings": [{"role": "roles/x", "members": ["user:a@b.c"]}]});
        let written = set(&mut policies, &policy);
        assert_eq!(written.status, 200);
        assert_ne!(written.body["etag"], "ACAB");
        assert_eq!(set(&mut policies, &policy).status, 409);
    }

    #[test]
    fn a_reader_of_an_older_version_does_not_see_conditions() {
        let mut policies = Policies::default();
        let condition = json!({"title": "t", "expression": "true"});
        let policy = json!({"version": 3, "etag": "ACAB", "bindings": [{"role": "roles/x", "members": ["user:a@b.c"], "condition": condition}]});
        assert_eq!(set(&mut policies, &policy).status, 200);
        assert_eq!(get(&mut policies, QUERY)["version"], 3);
        let old = get(&mut policies, "");
        assert!(old["bindings"][0]["role"].as_str().unwrap().contains("_withcond_"));
        assert!(old["bindings"][0].get("condition").is_none());
    }

    #[test]
    fn compute_takes_the_whole_policy_and_the_others_what_the_mask_names() {
        let audit = json!([{"service": "allServices"}]);
        for (path, kept) in [
            ("/compute/v1/projects/p/global/backendBuckets/b/setIamPolicy", None),
            (
                "/v1/projects/p/locations/us-east1/migrationJobs/j:setIamPolicy",
                Some(&audit),
            ),
        ] {
            let route = Route::of("POST", path).unwrap();
            let mut policies = Policies::default();
            let there = json!({"auditConfigs": audit, "future": 1});
            let etag = policies.put(&route.target, there.as_object().unwrap().clone())["etag"].clone();
            let body = json!({"policy": {"version": 3, "etag": etag}}).to_string();
            assert_eq!(
                policies
                    .answer(&Settings::default(), &route, "", body.as_bytes())
                    .status,
                200
            );
            assert_eq!(policies.get(&route.target).get("auditConfigs"), kept);
        }
    }
}
