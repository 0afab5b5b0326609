//! The services, who else writes to them, and what may never be gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bindery_emulator::{Emulator, Options};
use serde_json::{Map, Value, json};

use crate::program::{Kind, Program, SHARED_ROLES, TARGETS};

/// One identity's role on a target, under a condition's title and expression.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub target: String,
    pub role: String,
    pub condition: Option<(String, String)>,
    pub member: String,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            role,
            condition,
            member,
        } = self;
        write!(f, "{target} {role} {member} {condition:?}")
    }
}

/// What may never be gone, whoever writes.
#[derive(Debug, Default)]
struct Promised {
    /// What others granted.
    foreign: BTreeSet<Grant>,
    /// What each program had, and still declares.
    kept: BTreeMap<usize, BTreeSet<Grant>>,
    /// What each program has: it said so.
    had: BTreeMap<usize, BTreeSet<Grant>>,
    /// What was gone all the same.
    broken: Vec<String>,
}

/// The services and who writes to them.
pub struct World {
    pub emulator: Emulator,
    promised: Arc<Mutex<Promised>>,
    _runtime: tokio::runtime::Runtime,
}

/// What others wrote, in a form that nobody here would write.
fn odd() -> Value {
    json!({
        "role": "roles/odd", "members": ["user:MiXed@Example.com", "deleted:user:gone@example.com?uid=7"], "bindingId": "b1",
        "condition": {"title": "t", "expression": "true", "location": "here"},
    })
}

fn audit() -> Value {
    json!([{"service": "allServices", "auditLogConfigs": [{"logType": "DATA_READ"}]}])
}

fn targets() -> Vec<String> {
    let of_kind = |kind: Kind| (0..TARGETS).map(move |target| kind.target(target));
    Kind::ALL.into_iter().flat_map(of_kind).collect()
}

impl World {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let emulator = runtime.block_on(Emulator::start(Options::default())).unwrap();
        for target in targets() {
            emulator.put_policy(
                &target,
                json!({"bindings": [odd()], "auditConfigs": audit(), "future": {"n": 1}}),
            );
        }
        let promised = Arc::new(Mutex::new(Promised::default()));
        let watching = Arc::clone(&promised);
        emulator.watch(move |target, policy| watching.lock().unwrap().see(target, policy));
        Self {
            emulator,
            promised,
            _runtime: runtime,
        }
    }

    /// From now on what a program has and still declares must be there.
    pub fn promise(&self, program: &Program) {
        let mut promised = self.promised.lock().unwrap();
        let declared = program.grants();
        let had = promised.had.remove(&program.number).unwrap_or_default();
        promised.kept.insert(program.number, &had & &declared);
        promised.had.insert(program.number, &had & &declared);
    }

    /// A program was applied: what it declares is there.
    pub fn is_done(&self, program: &Program) {
        let declared = program.grants();
        let there = self.there();
        let missing: Vec<String> = declared.difference(&there).map(ToString::to_string).collect();
        assert!(
            missing.is_empty(),
            "program {} was applied without {missing:#?}",
            program.number
        );
        let mut promised = self.promised.lock().unwrap();
        promised.had.insert(program.number, declared.clone());
        promised.kept.insert(program.number, declared);
    }

    /// Everything that is granted, less what is odd.
    fn there(&self) -> BTreeSet<Grant> {
        let policies = self.emulator.policies();
        let all = targets().into_iter().flat_map(|target| {
            let policy = policies.get(&target);
            granted(&target, &policy)
        });
        all.collect()
    }

    /// Somebody granted by hand what a program is about to import.
    pub fn grant_for_import(&self, grants: &[Grant]) {
        for grant in grants {
            self.emulator.change_policy(&grant.target, |policy| add(policy, grant));
        }
    }

    /// Writes as somebody does who knows nothing of the programs, and takes only their own back.
    pub fn write_as_others(&self, seed: u64, is_over: &AtomicBool) {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(1_000));
        let targets = targets();
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(random.u64(20..120)));
            let target = random.choice(&targets).unwrap();
            // A binding owns its list, so that nobody else has a place in it.
            let role = if target.contains("edgeCacheOrigins") || random.f64() < 0.3 {
                format!("roles/foreign.{}", random.usize(0..3))
            } else {
                format!("roles/shared.{}", random.usize(0..SHARED_ROLES))
            };
            let grant = Grant {
                target: target.clone(),
                role,
                condition: random
                    .bool()
                    .then(|| ("condition 0".to_string(), "resource.name != \"x\"".to_string())),
                member: format!("user:Other{}@Example.com", random.usize(0..6)),
            };
            let promised = Arc::clone(&self.promised);
            self.emulator.change_policy(target, |policy| {
                let foreign = &mut promised.lock().unwrap().foreign;
                if foreign.remove(&grant) {
                    remove(policy, &grant);
                } else {
                    add(policy, &grant);
                    foreign.insert(grant);
                }
            });
        }
    }

    /// Compares what is there with what the programs declare and what others granted.
    pub fn is_as(&self, programs: &[Program], seed: u64) {
        let promised = self.promised.lock().unwrap();
        assert!(promised.broken.is_empty(), "SEED={seed}: {:#?}", promised.broken);
        let mut expected = promised.foreign.clone();
        expected.extend(programs.iter().flat_map(Program::grants));
        let there = self.there();
        let lost: Vec<String> = expected.difference(&there).map(ToString::to_string).collect();
        let left: Vec<String> = there.difference(&expected).map(ToString::to_string).collect();
        assert!(
            lost.is_empty() && left.is_empty(),
            "SEED={seed}: lost {lost:#?}, left {left:#?}"
        );
    }
}

impl Promised {
    /// Looks at a policy that was just written.
    fn see(&mut self, target: &str, policy: &Map<String, Value>) {
        let there = granted(target, policy);
        if there.len() != there.iter().collect::<BTreeSet<_>>().len() {
            self.broken.push(format!("{target} has something twice: {policy:?}"));
        }
        let there: BTreeSet<Grant> = there.into_iter().collect();
        let all = self.foreign.iter().chain(self.kept.values().flatten());
        let gone = all.filter(|grant| grant.target == target && !there.contains(grant));
        let gone: Vec<String> = gone.map(|grant| format!("gone: {grant}")).collect();
        self.broken.extend(gone);
        if !bindings(policy).any(|binding| *binding == odd()) || policy.get("auditConfigs") != Some(&audit()) {
            self.broken
                .push(format!("{target}: what others wrote was rewritten: {policy:?}"));
        }
    }
}

fn bindings(policy: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    policy.get("bindings").and_then(Value::as_array).into_iter().flatten()
}

fn condition(binding: &Value) -> Option<(String, String)> {
    let condition = binding.get("condition")?;
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_string();
    Some((text("title"), text("expression")))
}

/// What a policy grants, less what is odd.
fn granted(target: &str, policy: &Map<String, Value>) -> Vec<Grant> {
    let ordinary = bindings(policy).filter(|binding| binding["role"] != "roles/odd");
    let grants = ordinary.flat_map(|binding| {
        let members = binding["members"].as_array().into_iter().flatten();
        members.map(|member| Grant {
            target: target.to_string(),
            role: binding["role"].as_str().unwrap_or_default().to_string(),
            condition: condition(binding),
            member: member.as_str().unwrap_or_default().to_string(),
        })
    });
    grants.collect()
}

fn list(policy: &mut Map<String, Value>) -> &mut Vec<Value> {
    let bindings = policy.entry("bindings").or_insert_with(|| json!([]));
    bindings.as_array_mut().unwrap()
}

fn is_of(binding: &Value, grant: &Grant) -> bool {
    binding["role"] == grant.role.as_str() && condition(binding) == grant.condition
}

fn add(policy: &mut Map<String, Value>, grant: &Grant) {
    let bindings = list(policy);
    if let Some(binding) = bindings.iter_mut().find(|binding| is_of(binding, grant)) {
        let members = binding["members"].as_array_mut().unwrap();
        if !members.contains(&json!(grant.member)) {
            members.push(json!(grant.member));
        }
        return;
    }
    let mut binding = json!({"role": grant.role, "members": [grant.member]});
    if let Some((title, expression)) = &grant.condition {
        binding["condition"] = json!({"title": title, "expression": expression});
    }
    bindings.push(binding);
}

fn remove(policy: &mut Map<String, Value>, grant: &Grant) {
    let bindings = list(policy);
    for binding in bindings.iter_mut().filter(|binding| is_of(binding, grant)) {
        binding["members"]
            .as_array_mut()
            .unwrap()
            .retain(|member| *member != grant.member);
    }
    bindings.retain(|binding| binding["members"] != json!([]));
}
