//! What is known to exist: a Pulumi deployment document, version 3, so that `pulumi stack import` takes it.

use std::collections::HashSet;

use bindery_resource::{PropertyMap, Urn, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use thiserror::Error;

/// The version of the document.
const VERSION: u64 = 3;

/// A deployment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deployment {
    /// When it was written: RFC 3339.
    pub time: String,
    /// The provider's configuration when it was last used.
    pub config: PropertyMap,
    /// Its resources, each after those that it depends on.
    pub resources: Vec<ResourceState>,
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

/// Why a text is not a deployment that this program works on.
#[derive(Debug, Error)]
pub enum StateError {
    /// It is not one.
    #[error("it is not a deployment document: {0}")]
    Form(#[from] serde_json::Error),
    /// It is of another version.
    #[error("it is a deployment of version {0}; this program reads version {VERSION}: use the program that wrote it")]
    Version(u64),
    /// It is of another stack.
    #[error("it is of the stack `{found}`, not `{expected}`")]
    OtherStack {
        /// `PROJECT/STACK` of the document.
        found: String,
        /// `PROJECT/STACK` that was asked for.
        expected: String,
    },
    /// A resource in it cannot be read.
    #[error("its resource `{urn}` cannot be used: {reason}")]
    Resource {
        /// Which.
        urn: String,
        /// Why.
        reason: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u64,
    deployment: Body,
}

#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(default)]
    manifest: Manifest,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<WireResource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pending_operations: Vec<WireOperation>,
}

#[derive(Default, Serialize, Deserialize)]
struct Manifest {
    #[serde(default)]
    time: String,
    #[serde(default)]
    magic: String,
    #[serde(default)]
    version: String,
}

#[derive(Serialize, Deserialize)]
struct WireOperation {
    resource: WireResource,
    #[serde(rename = "type")]
    kind: OperationType,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResource {
    urn: String,
    custom: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    id: String,
    #[serde(rename = "type")]
    token: String,
    #[serde(default, skip_serializing_if = "is_false")]
    delete: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    inputs: Map<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    outputs: Map<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    parent: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    provider: String,
    #[serde(default, skip_serializing_if = "is_false")]
    protect: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    external: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    retain_on_delete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Whose state a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The project: the stack file's name.
    pub project: String,
    /// The stack.
    pub stack: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's version.
    pub version: String,
}

impl Owner {
    fn stack_urn(&self) -> Urn {
        let name = format!("{}-{}", self.project, self.stack);
        Urn::new(&self.stack, &self.project, "pulumi:pulumi:Stack", &name)
    }

    fn provider_urn(&self) -> Urn {
        let name = format!("default_{}", self.version.replace(['.', '-', '+'], "_"));
        Urn::new(
            &self.stack,
            &self.project,
            &format!("pulumi:providers:{}", self.provider),
            &name,
        )
    }
}

/// The id of the provider resource: any will do.
const PROVIDER_ID: &str = "embedded";

impl Deployment {
    /// Reads a document.
    ///
    /// # Errors
    /// When it is not a deployment of this stack that can be used whole.
    pub fn parse(text: &str, owner: &Owner) -> Result<Self, StateError> {
        // Before the rest is read: a later version may have another form.
        let any: serde_json::Value = serde_json::from_str(text)?;
        let version = any
            .get("version")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default();
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        let Document { deployment, .. } = serde_json::from_str(text)?;
        let mut config = PropertyMap::new();
        let mut resources = Vec::new();
        for resource in deployment.resources {
            if resource.token == "pulumi:pulumi:Stack" {
                owned(&resource, owner)?;
            } else if resource.token.starts_with("pulumi:providers:") {
                config = properties(resource.inputs);
                config.shift_remove("version");
                config.shift_remove("__internal");
            } else {
                resources.push(read(resource, owner)?);
            }
        }
        let pending = deployment.pending_operations.into_iter().map(|operation| {
            Ok(PendingOperation {
                kind: operation.kind,
                resource: read(operation.resource, owner)?,
            })
        });
        Ok(Self {
            time: deployment.manifest.time,
            config,
            resources,
            pending_operations: pending.collect::<Result<_, StateError>>()?,
        })
    }

    /// Writes the document.
    ///
    /// # Errors
    /// When it has no JSON.
    pub fn to_text(&self, owner: &Owner) -> Result<String, serde_json::Error> {
        let mut resources = vec![write_stack(owner), write_provider(owner, &self.config)];
        resources.extend(self.resources.iter().map(|resource| write(resource, owner)));
        let document = Document {
            version: VERSION,
            deployment: Body {
                manifest: Manifest {
                    time: self.time.clone(),
                    ..Manifest::default()
                },
                resources,
                pending_operations: self
                    .pending_operations
                    .iter()
                    .map(|operation| WireOperation {
                        resource: write(&operation.resource, owner),
                        kind: operation.kind,
                    })
                    .collect(),
            },
        };
        serde_json::to_string_pretty(&document)
    }

    /// Puts each resource after those that it depends on, and leaves the rest in its order: what `pulumi stack import` asks.
    pub fn sort(&mut self) {
        let known: HashSet<Urn> = self.resources.iter().map(|resource| resource.urn.clone()).collect();
        let mut placed = HashSet::new();
        let mut waiting = std::mem::take(&mut self.resources);
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut blocked = Vec::new();
            for resource in waiting {
                let is_free = |urn: &Urn| *urn == resource.urn || placed.contains(urn) || !known.contains(urn);
                if resource.dependencies.iter().all(is_free) {
                    placed.insert(resource.urn.clone());
                    self.resources.push(resource);
                } else {
                    blocked.push(resource);
                }
            }
            if blocked.len() == before {
                // A circle: another program wrote it. Nothing is lost.
                self.resources.append(&mut blocked);
            }
            waiting = blocked;
        }
    }

    /// The resource of a URN, those that are to be deleted aside.
    pub fn resource(&self, urn: &Urn) -> Option<&ResourceState> {
        self.resources
            .iter()
            .find(|resource| resource.urn == *urn && !resource.delete)
    }
}

fn properties(json: Map<String, serde_json::Value>) -> PropertyMap {
    json.into_iter()
        .map(|(name, value)| (name, Value::from(value)))
        .collect()
}

fn to_json(properties: &PropertyMap) -> Map<String, serde_json::Value> {
    properties
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.to_json()?)))
        .collect()
}

fn owned(resource: &WireResource, owner: &Owner) -> Result<Urn, StateError> {
    let bad = |reason| StateError::Resource {
        urn: resource.urn.clone(),
        reason,
    };
    let urn = Urn::parse(&resource.urn).ok_or_else(|| bad("it is no URN"))?;
    if urn.stack() != owner.stack || urn.project() != owner.project {
        return Err(StateError::OtherStack {
            found: format!("{}/{}", urn.project(), urn.stack()),
            expected: format!("{}/{}", owner.project, owner.stack),
        });
    }
    Ok(urn)
}

fn read(resource: WireResource, owner: &Owner) -> Result<ResourceState, StateError> {
    let urn = owned(&resource, owner)?;
    let dependencies = resource.dependencies.iter().map(|dependency| Urn::parse(dependency));
    let bad = |reason| StateError::Resource {
        urn: resource.urn.clone(),
        reason,
    };
    let dependencies = dependencies
        .collect::<Option<_>>()
        .ok_or_else(|| bad("a dependency of it is no URN"))?;
    if resource.protect || resource.external || resource.retain_on_delete {
        return Err(bad(
            "it is protected, external or retained on delete, which only Pulumi honours: use Pulumi for this stack",
        ));
    }
    if !resource.custom {
        return Err(bad("it is a component resource, which a stack file cannot declare"));
    }
    Ok(ResourceState {
        urn,
        id: resource.id,
        inputs: properties(resource.inputs),
        outputs: properties(resource.outputs),
        dependencies,
        delete: resource.delete,
    })
}

fn write(resource: &ResourceState, owner: &Owner) -> WireResource {
    WireResource {
        urn: resource.urn.to_string(),
        custom: true,
        id: resource.id.clone(),
        token: resource.urn.token().to_string(),
        delete: resource.delete,
        inputs: to_json(&resource.inputs),
        outputs: to_json(&resource.outputs),
        parent: owner.stack_urn().to_string(),
        dependencies: resource.dependencies.iter().map(ToString::to_string).collect(),
        provider: format!("{}::{PROVIDER_ID}", owner.provider_urn()),
        protect: false,
        external: false,
        retain_on_delete: false,
    }
}

fn write_stack(owner: &Owner) -> WireResource {
    WireResource {
        urn: owner.stack_urn().to_string(),
        custom: false,
        id: String::new(),
        token: "pulumi:pulumi:Stack".to_string(),
        delete: false,
        inputs: Map::new(),
        outputs: Map::new(),
        parent: String::new(),
        dependencies: Vec::new(),
        provider: String::new(),
        protect: false,
        external: false,
        retain_on_delete: false,
    }
}

fn write_provider(owner: &Owner, config: &PropertyMap) -> WireResource {
    let mut outputs = to_json(config);
    outputs.insert("version".to_string(), json!(owner.version));
    let mut inputs = outputs.clone();
    inputs.insert("__internal".to_string(), json!({}));
    WireResource {
        urn: owner.provider_urn().to_string(),
        custom: true,
        id: PROVIDER_ID.to_string(),
        token: owner.provider_urn().token().to_string(),
        inputs,
        outputs,
        ..write_stack(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner {
            project: "grants".into(),
            stack: "dev".into(),
            provider: "bindery".into(),
            version: "0.32.0".into(),
        }
    }

    fn deployment() -> Deployment {
        let text = |text: &str| Value::from(text);
        let resource = |name: &str| ResourceState {
            urn: Urn::new("dev", "grants", "bindery:compute/v1:X", name),
            id: format!("id-{name}"),
            inputs: PropertyMap::from_iter([("member".to_string(), text("user:a@b.c"))]),
            outputs: PropertyMap::from_iter([("etag".to_string(), text("BwX="))]),
            dependencies: Vec::new(),
            delete: false,
        };
        Deployment {
            time: "2026-01-01T00:00:00Z".into(),
            config: PropertyMap::from_iter([("project".to_string(), text("p"))]),
            resources: vec![
                resource("a"),
                ResourceState {
                    dependencies: vec![resource("a").urn],
                    delete: true,
                    ..resource("b")
                },
            ],
            pending_operations: vec![PendingOperation {
                kind: OperationType::Creating,
                resource: resource("c"),
            }],
        }
    }

    #[test]
    fn a_deployment_reads_back_as_it_was_written() {
        let text = deployment().to_text(&owner()).unwrap();
        assert_eq!(Deployment::parse(&text, &owner()).unwrap(), deployment());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["deployment"]["resources"][0]["type"], "pulumi:pulumi:Stack");
        assert_eq!(
            json["deployment"]["resources"][2]["provider"],
            "urn:pulumi:dev::grants::pulumi:providers:bindery::default_0_32_0::embedded"
        );
        assert_eq!(json["deployment"]["pending_operations"][0]["type"], "creating");
    }

    #[test]
    fn each_resource_stands_after_those_that_it_depends_on() {
        let mut deployment = deployment();
        deployment.resources.reverse();
        deployment.sort();
        let names: Vec<&str> = deployment
            .resources
            .iter()
            .map(|resource| resource.urn.name())
            .collect();
        assert_eq!(names, ["a", "b"]);
        let circle = deployment.resources.last().map(|b| b.urn.clone());
        deployment.resources[0].dependencies.extend(circle);
        deployment.sort();
        assert_eq!(deployment.resources.len(), 2);
    }

    #[test]
    fn what_is_not_this_stacks_state_is_refused() {
        let parse = |text: &str, owner: &Owner| Deployment::parse(text, owner).unwrap_err();
        assert!(matches!(parse("{", &owner()), StateError::Form(_)));
        assert!(matches!(
            parse(r#"{"version":4,"deployment":{"future":1}}"#, &owner()),
            StateError::Version(4)
        ));
        let text = deployment().to_text(&owner()).unwrap();
        let other = Owner {
            stack: "prod".into(),
            ..owner()
        };
        assert!(matches!(parse(&text, &other), StateError::OtherStack { .. }));
        let protected = text.replacen("\"id\": \"id-a\"", "\"id\": \"id-a\", \"protect\": true", 1);
        assert!(matches!(parse(&protected, &owner()), StateError::Resource { .. }));
    }
}
