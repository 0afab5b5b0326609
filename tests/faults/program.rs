//! A program that changes: what it declares, as a stack file and as grants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::world::{Grant, World};

/// What a resource is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bucket,
    Job,
    Origin,
}

/// Targets of each kind.
pub const TARGETS: usize = 2;

/// Roles that every program grants, on buckets and jobs.
pub const SHARED_ROLES: usize = 3;

impl Kind {
    pub const ALL: [Self; 3] = [Self::Bucket, Self::Job, Self::Origin];

    const fn token(self) -> &'static str {
        match self {
            Self::Bucket => "bindery:compute/v1:BackendBucketIamMember",
            Self::Job => "bindery:datamigration/v1:MigrationJobIamMember",
            Self::Origin => "bindery:networkservices/v1:EdgeCacheOriginIamBinding",
        }
    }

    fn name(self, target: usize) -> String {
        let name = match self {
            Self::Bucket => "logs",
            Self::Job => "move",
            Self::Origin => "video",
        };
        format!("{name}{target}")
    }

    pub fn target(self, target: usize) -> String {
        let name = self.name(target);
        match self {
            Self::Bucket => format!("projects/home/global/backendBuckets/{name}"),
            Self::Job => format!("projects/home/locations/us-east1/migrationJobs/{name}"),
            Self::Origin => format!("projects/home/locations/global/edgeCacheOrigins/{name}"),
        }
    }
}

/// One resource.
#[derive(Debug, Clone, PartialEq)]
struct Resource {
    kind: Kind,
    target: usize,
    role: usize,
    condition: Option<usize>,
    /// Several for a binding, one for a member.
    members: BTreeSet<usize>,
    is_imported: bool,
}

/// A kind, a target, a role, a condition, and a member's identity.
type Claim = (Kind, usize, usize, Option<usize>, Option<usize>);

impl Resource {
    /// What it owns.
    fn claim(&self) -> Claim {
        let member = self.members.first().filter(|_| self.kind != Kind::Origin);
        (self.kind, self.target, self.role, self.condition, member.copied())
    }
}

/// A program, and how it changes.
pub struct Program {
    pub number: usize,
    pub random: fastrand::Rng,
    resources: BTreeMap<String, Resource>,
    /// What it owns or may own: of the last version that was applied, and of all since.
    held: BTreeSet<Claim>,
    names: usize,
}

impl Program {
    pub fn new(number: usize, seed: u64) -> Self {
        Self {
            number,
            random: fastrand::Rng::with_seed(seed.wrapping_add(number as u64)),
            resources: BTreeMap::new(),
            held: BTreeSet::new(),
            names: 0,
        }
    }

    /// Nothing is declared any more.
    pub fn clear(&mut self) {
        self.resources.clear();
    }

    /// It was applied, and owns what it declares.
    pub fn is_done(&mut self) {
        self.held = self.resources.values().map(Resource::claim).collect();
    }

    /// Some changes. False if the run that applies them must not be stopped: what is imported and never was is nobody's.
    pub fn change(&mut self, world: &World) -> bool {
        let can_be_killed = self.changed(world);
        self.held.extend(self.resources.values().map(Resource::claim));
        can_be_killed
    }

    fn changed(&mut self, world: &World) -> bool {
        for resource in self.resources.values_mut() {
            resource.is_imported = false;
        }
        if self.resources.is_empty() {
            for _ in 0..10 {
                self.create();
            }
            return true;
        }
        for _ in 0..self.random.usize(1..6) {
            let before = self.resources.clone();
            match self.random.u32(0..8) {
                0 | 1 => drop(self.create()),
                2 => self.alter(),
                3 => self.rename(),
                4 => self.swap(),
                5 => self.change_members(),
                6 => self.alter(),
                _ => drop(self.any().and_then(|name| self.resources.remove(&name))),
            }
            if !self.has_one_owner_each() {
                self.resources = before;
            }
        }
        if self.random.f64() < 0.3
            && let Some(name) = self.create()
        {
            let created = &self.resources[&name];
            // What it owned before is there already, perhaps with other members.
            if !self.held.contains(&created.claim()) {
                world.grant_for_import(&self.grants_of(created));
                if let Some(created) = self.resources.get_mut(&name) {
                    created.is_imported = true;
                }
                return false;
            }
        }
        true
    }

    fn any(&mut self) -> Option<String> {
        let names: Vec<&String> = self.resources.keys().collect();
        self.random.choice(names).cloned()
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("r{}", self.names)
    }

    /// A resource that is not there yet, unless another would own it.
    fn create(&mut self) -> Option<String> {
        let kind = self.random.choice(Kind::ALL)?;
        let count = if kind == Kind::Origin {
            self.random.usize(1..5)
        } else {
            1
        };
        let resource = Resource {
            kind,
            target: self.random.usize(0..TARGETS),
            role: self.random.usize(0..SHARED_ROLES),
            condition: self.random.bool().then(|| self.random.usize(0..2)),
            members: (0..count).map(|_| self.random.usize(0..12)).collect(),
            is_imported: false,
        };
        let name = self.new_name();
        self.resources.insert(name.clone(), resource);
        if self.has_one_owner_each() {
            return Some(name);
        }
        self.resources.remove(&name);
        None
    }

    /// Another role, target, identity or condition: a replacement.
    fn alter(&mut self) {
        let Some(name) = self.any() else { return };
        let random = &mut self.random;
        let Some(resource) = self.resources.get_mut(&name) else {
            return;
        };
        match random.u32(0..4) {
            0 => resource.role = random.usize(0..SHARED_ROLES),
            1 => resource.target = random.usize(0..TARGETS),
            2 => resource.condition = random.bool().then(|| random.usize(0..2)),
            _ => resource.members = [random.usize(0..12)].into(),
        }
    }

    /// The same under another name.
    fn rename(&mut self) {
        let Some(name) = self.any() else { return };
        let new = self.new_name();
        if let Some(resource) = self.resources.remove(&name) {
            self.resources.insert(new, resource);
        }
    }

    /// Two resources change places.
    fn swap(&mut self) {
        let (Some(one), Some(other)) = (self.any(), self.any()) else {
            return;
        };
        let (first, second) = (self.resources[&one].clone(), self.resources[&other].clone());
        if first.kind == second.kind {
            self.resources.insert(one, second);
            self.resources.insert(other, first);
        }
    }

    fn change_members(&mut self) {
        let Some(name) = self.any() else { return };
        let random = &mut self.random;
        let Some(resource) = self.resources.get_mut(&name) else {
            return;
        };
        if resource.kind != Kind::Origin {
            return;
        }
        resource.members.insert(random.usize(0..12));
        if random.bool() && resource.members.len() > 1 {
            resource.members.pop_first();
        }
    }

    /// Whether no two resources own the same.
    fn has_one_owner_each(&self) -> bool {
        let claims = self.resources.values().map(Resource::claim);
        let claims: Vec<_> = claims.collect();
        claims.iter().collect::<BTreeSet<_>>().len() == claims.len()
    }

    fn role(&self, resource: &Resource) -> String {
        match resource.kind {
            // A binding owns its whole list: no two programs have one.
            Kind::Origin => format!("roles/list.p{}r{}", self.number, resource.role),
            Kind::Bucket | Kind::Job => format!("roles/shared.{}", resource.role),
        }
    }

    fn members(&self, resource: &Resource) -> Vec<String> {
        let member = |member| format!("user:p{}m{member}@example.com", self.number);
        resource.members.iter().map(member).collect()
    }

    fn grants_of(&self, resource: &Resource) -> Vec<Grant> {
        let grant = |member| Grant {
            target: resource.kind.target(resource.target),
            role: self.role(resource),
            condition: resource.condition.map(|number| (title(number), EXPRESSION.to_string())),
            member,
        };
        self.members(resource).into_iter().map(grant).collect()
    }

    /// What is declared.
    pub fn grants(&self) -> BTreeSet<Grant> {
        self.resources
            .values()
            .flat_map(|resource| self.grants_of(resource))
            .collect()
    }

    /// The resources of the stack file.
    pub fn yaml(&self) -> String {
        let mut text = String::new();
        for (name, resource) in &self.resources {
            let (role, members) = (self.role(resource), self.members(resource));
            let subject = match resource.kind {
                Kind::Origin => format!("members: ['{}']", members.join("', '")),
                Kind::Bucket | Kind::Job => format!("member: '{}'", members[0]),
            };
            let condition = resource.condition.map_or(String::new(), |number| {
                format!(
                    ", condition: {{title: '{}', expression: '{EXPRESSION}'}}",
                    title(number)
                )
            });
            write!(
                text,
                "  {name}:\n    type: {}\n    properties: {{name: {}, role: {role}, {subject}{condition}}}\n",
                resource.kind.token(),
                resource.kind.name(resource.target)
            )
            .unwrap();
            if resource.is_imported {
                let identity = match resource.kind {
                    Kind::Origin => String::new(),
                    Kind::Bucket | Kind::Job => format!(" {}", members[0]),
                };
                let title = resource
                    .condition
                    .map_or(String::new(), |number| format!(" {}", title(number)));
                let target = resource.kind.target(resource.target);
                writeln!(text, "    options: {{import: '{target} {role}{identity}{title}'}}").unwrap();
            }
        }
        text
    }
}

const EXPRESSION: &str = "resource.name != \"x\"";

fn title(number: usize) -> String {
    format!("condition {number}")
}
