//! What is known to exist, and how that changes. Every change is a value, so that it can be written down before the next.

use std::collections::{BTreeMap, HashMap};

use bindery_resource::{PropertyMap, Urn};
use serde::{Deserialize, Serialize};

/// A deployment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deployment {
    /// When it was written: RFC 3339.
    pub time: String,
    /// The provider's configuration when it was last used.
    pub config: PropertyMap,
    /// What the stack gives to others.
    pub outputs: PropertyMap,
    /// Its resources.
    pub resources: BTreeMap<Urn, ResourceState>,
    /// What was replaced and is still to be deleted, by URN and id.
    pub replaced: BTreeMap<(Urn, String), ResourceState>,
    /// Operations that were begun, and whose end is not known.
    pub pending_operations: Vec<PendingOperation>,
}

/// One resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceState {
    /// Its URN.
    pub urn: Urn,
    /// Its id; empty where it is being created and its provider does not know it beforehand.
    pub id: String,
    /// Its checked inputs.
    pub inputs: PropertyMap,
    /// Its outputs.
    pub outputs: PropertyMap,
    /// The resources that come before it.
    pub dependencies: Vec<Urn>,
    /// It was replaced, and is still to be deleted.
    pub delete: bool,
    /// It is neither deleted nor replaced.
    pub protect: bool,
    /// Where it is no longer declared, it is forgotten, and stays as it is.
    pub retain_on_delete: bool,
    /// The id by which it was adopted, as the stack file says it.
    pub import_id: Option<String>,
}

/// An operation that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingOperation {
    /// What it does.
    pub kind: OperationType,
    /// The resource as it is meant to become, or as it was.
    pub resource: ResourceState,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum OperationType {
    Creating,
    Updating,
    Deleting,
}

/// One change of a deployment.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few live at the same time, and none for long")]
pub enum Change {
    /// An operation is begun.
    Begin(PendingOperation),
    /// An operation has come to an end.
    End(PendingOperation, Outcome),
    /// A resource is like this now, though nothing was done to it.
    Note(ResourceState),
    /// A resource is no longer known.
    Forget(ResourceState),
    /// Resources have other URNs now: from the first of each pair to the second.
    Rename(Vec<(Urn, Urn)>),
    /// The provider's configuration.
    Configure(PropertyMap),
    /// The stack's outputs.
    Export(PropertyMap),
}

/// What an operation came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing was done.
    Nothing,
    /// There is a new resource. One of the same URN is replaced by it, and still to be deleted.
    Made(ResourceState),
    /// The resource is like this now.
    Changed(ResourceState),
    /// The resource is gone.
    Gone,
}

impl PendingOperation {
    /// Whether this is the same operation, whatever else is known of its resource.
    fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.resource.is(&other.resource)
    }
}

impl ResourceState {
    /// Whether this is the same resource, whatever else is known of it.
    pub fn is(&self, other: &Self) -> bool {
        self.urn == other.urn && self.id == other.id && self.delete == other.delete
    }
}

impl Deployment {
    /// The resource of a URN, those that are to be deleted aside.
    pub fn resource(&self, urn: &Urn) -> Option<&ResourceState> {
        self.resources.get(urn)
    }

    /// Every resource, those that are to be deleted among them.
    pub fn all(&self) -> impl Iterator<Item = &ResourceState> {
        self.resources.values().chain(self.replaced.values())
    }

    /// Whether nothing is known to exist, and nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.replaced.is_empty() && self.pending_operations.is_empty()
    }

    /// Puts a resource where it belongs, in the place of what is known of it.
    pub fn put(&mut self, resource: ResourceState) {
        let urn = resource.urn.clone();
        if resource.delete {
            self.replaced.insert((urn, resource.id.clone()), resource);
        } else {
            self.resources.insert(urn, resource);
        }
    }

    fn remove(&mut self, resource: &ResourceState) {
        if resource.delete {
            self.replaced.remove(&(resource.urn.clone(), resource.id.clone()));
        } else if self
            .resources
            .get(&resource.urn)
            .is_some_and(|known| known.id == resource.id)
        {
            self.resources.remove(&resource.urn);
        }
    }

    /// Makes a change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Begin(operation) => self.pending_operations.push(operation),
            Change::End(ended, outcome) => {
                // Only the one that has ended: an earlier one of the same kind may still be unsettled.
                if let Some(index) = self
                    .pending_operations
                    .iter()
                    .rposition(|operation| operation.is(&ended))
                {
                    self.pending_operations.remove(index);
                }
                match outcome {
                    Outcome::Nothing => {}
                    Outcome::Made(made) => {
                        if let Some(old) = self.resources.remove(&made.urn) {
                            // How it goes is for the new declaration to say.
                            self.put(ResourceState {
                                delete: true,
                                protect: false,
                                retain_on_delete: made.retain_on_delete,
                                ..old
                            });
                        }
                        self.put(made);
                    }
                    Outcome::Changed(changed) => {
                        self.remove(&ended.resource);
                        self.put(changed);
                    }
                    Outcome::Gone => self.remove(&ended.resource),
                }
            }
            Change::Note(resource) => self.put(resource),
            Change::Forget(resource) => self.remove(&resource),
            Change::Rename(renamed) => self.rename(&renamed.into_iter().collect()),
            Change::Configure(config) => self.config = config,
            Change::Export(outputs) => self.outputs = outputs,
        }
    }

    fn rename(&mut self, renamed: &HashMap<Urn, Urn>) {
        let new = |urn: Urn| renamed.get(&urn).cloned().unwrap_or(urn);
        let rename = |resource: ResourceState| ResourceState {
            urn: new(resource.urn),
            dependencies: resource.dependencies.into_iter().map(new).collect(),
            ..resource
        };
        let resources = std::mem::take(&mut self.resources).into_values();
        let replaced = std::mem::take(&mut self.replaced).into_values();
        for resource in resources.chain(replaced) {
            self.put(rename(resource));
        }
        for operation in &mut self.pending_operations {
            operation.resource = rename(operation.resource.clone());
        }
    }

    /// The resources, each after those that it depends on; what is to be deleted stands after what took its place.
    pub fn in_order(&self) -> Vec<&ResourceState> {
        let mut of: BTreeMap<&Urn, Vec<&ResourceState>> = BTreeMap::new();
        for resource in self.all() {
            of.entry(&resource.urn).or_default().push(resource);
        }
        let mut order = Vec::new();
        let mut seen: HashMap<&Urn, bool> = HashMap::new();
        // Depth first, without recursion. In a circle, which another program wrote, nothing is lost.
        let mut open: Vec<(&Urn, bool)> = of.keys().rev().map(|urn| (*urn, false)).collect();
        while let Some((urn, is_ready)) = open.pop() {
            let Some(resources) = of.get(urn) else { continue };
            if is_ready {
                if seen.insert(urn, true) != Some(true) {
                    order.extend(resources.iter().copied());
                }
            } else if !seen.contains_key(urn) {
                seen.insert(urn, false);
                open.push((urn, true));
                let dependencies = resources.iter().flat_map(|resource| &resource.dependencies);
                open.extend(
                    dependencies
                        .filter(|urn| !seen.contains_key(urn))
                        .map(|urn| (urn, false)),
                );
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urn(name: &str) -> Urn {
        Urn::new("dev", "p", "t", name)
    }

    fn resource(name: &str, id: &str) -> ResourceState {
        ResourceState {
            urn: urn(name),
            id: id.to_string(),
            inputs: PropertyMap::new(),
            outputs: PropertyMap::new(),
            dependencies: Vec::new(),
            delete: false,
            protect: false,
            retain_on_delete: false,
            import_id: None,
        }
    }

    fn pending(kind: OperationType, resource: ResourceState) -> PendingOperation {
        PendingOperation { kind, resource }
    }

    #[test]
    fn what_is_made_in_the_place_of_another_leaves_that_to_be_deleted() {
        let mut deployment = Deployment::default();
        let make = |id: &str| {
            let operation = pending(OperationType::Creating, resource("a", ""));
            [
                Change::Begin(operation.clone()),
                Change::End(operation, Outcome::Made(resource("a", id))),
            ]
        };
        for change in make("1").into_iter().chain(make("2")) {
            deployment.apply(change);
        }
        assert_eq!(deployment.resource(&urn("a")).map(|found| found.id.as_str()), Some("2"));
        let old = deployment.replaced.values().next().cloned().unwrap();
        assert!(old.delete && old.id == "1");
        let delete = pending(OperationType::Deleting, old);
        deployment.apply(Change::Begin(delete.clone()));
        deployment.apply(Change::End(delete, Outcome::Gone));
        assert_eq!(deployment.all().count(), 1);
        assert_eq!(deployment.pending_operations, []);
    }

    #[test]
    fn a_rename_reaches_dependencies_and_pending_operations() {
        let mut deployment = Deployment::default();
        deployment.put(resource("a", "1"));
        deployment.put(ResourceState {
            dependencies: vec![urn("a")],
            ..resource("b", "2")
        });
        deployment.apply(Change::Begin(pending(OperationType::Updating, resource("a", "1"))));
        deployment.apply(Change::Rename(vec![(urn("a"), urn("new"))]));
        assert_eq!(deployment.resources[&urn("b")].dependencies, [urn("new")]);
        assert!(deployment.resources.contains_key(&urn("new")) && !deployment.resources.contains_key(&urn("a")));
        assert_eq!(deployment.pending_operations[0].resource.urn, urn("new"));
    }

    #[test]
    fn each_resource_stands_after_those_that_it_depends_on() {
        let mut deployment = Deployment::default();
        let with = |name: &str, on: &[&str]| ResourceState {
            dependencies: on.iter().map(|name| urn(name)).collect(),
            ..resource(name, name)
        };
        for resource in [
            with("a", &["c"]),
            with("b", &["a", "gone"]),
            with("c", &[]),
            with("x", &["y"]),
            with("y", &["x"]),
        ] {
            deployment.put(resource);
        }
        deployment.put(ResourceState {
            delete: true,
            ..with("c", &["d"])
        });
        deployment.put(with("d", &[]));
        let names: Vec<&str> = deployment
            .in_order()
            .iter()
            .map(|resource| resource.urn.name())
            .collect();
        assert_eq!(names, ["d", "c", "c", "a", "b", "y", "x"]);
    }
}
