//! A deployment as text: a Pulumi deployment document, version 3, so that `pulumi stack import` takes it.

use std::collections::HashSet;

use bindery_resource::{PropertyMap, Urn, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use thiserror::Error;

use crate::state::{Deployment, OperationType, PendingOperation, ResourceState};

/// The version of the document.
const VERSION: u64 = 3;

/// The id of the provider resource: any will do.
const PROVIDER_ID: &str = "embedded";

/// What marks a secret in a Pulumi document.
const SECRET: &str = "4dabf18193072939515e22adb298388d";

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
    /// It was made with another provider.
    #[error(
        "it was made with the provider `{found}`, and this run uses `{expected}`: pass the same `--component` again"
    )]
    OtherProvider {
        /// The provider of the document.
        found: String,
        /// The provider of this run.
        expected: String,
    },
    /// It holds a secret, which would be written back in the clear.
    #[error("it holds a secret, which only Pulumi keeps: use Pulumi for this stack")]
    Secret,
    /// A resource in it cannot be read.
    #[error("its resource `{urn}` cannot be used: {reason}")]
    Resource {
        /// Which.
        urn: String,
        /// Why.
        reason: &'static str,
    },
    /// A line of its journal cannot be read, and it is not the last one.
    #[error("its journal is damaged at line {line}: {reason}")]
    Journal {
        /// Which, counted from 1.
        line: usize,
        /// Why.
        reason: String,
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
pub(crate) struct WireOperation {
    resource: WireResource,
    #[serde(rename = "type")]
    kind: OperationType,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireResource {
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
    #[serde(default, rename = "importID", skip_serializing_if = "Option::is_none")]
    import_id: Option<String>,
    #[serde(default, skip_serializing)]
    pending_replacement: bool,
    #[serde(default, skip_serializing)]
    taint: bool,
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
        let token = format!("pulumi:providers:{}", self.provider);
        Urn::new(&self.stack, &self.project, &token, &name)
    }
}

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
        if text.contains(SECRET) {
            return Err(StateError::Secret);
        }
        let Document { deployment: body, .. } = serde_json::from_value(any)?;
        let mut deployment = Self {
            time: body.manifest.time,
            ..Self::default()
        };
        let mut provider_id: Option<String> = None;
        for resource in body.resources {
            if resource.token == "pulumi:pulumi:Stack" {
                owned(&resource, owner)?;
                deployment.outputs = properties(resource.outputs);
            } else if let Some(provider) = resource.token.strip_prefix("pulumi:providers:") {
                owned(&resource, owner)?;
                if provider != owner.provider {
                    return Err(StateError::OtherProvider {
                        found: provider.to_string(),
                        expected: owner.provider.clone(),
                    });
                }
                let reference = format!("{}::{}", resource.urn, resource.id);
                if provider_id.replace(reference).is_some() {
                    return Err(StateError::Resource {
                        urn: resource.urn,
                        reason: "it is a second provider, which only Pulumi can use: use Pulumi for this stack",
                    });
                }
                deployment.config = properties(resource.inputs);
                deployment.config.shift_remove("version");
                deployment.config.shift_remove("__internal");
            } else {
                let is_others = provider_id.as_ref().is_some_and(|id| *id != resource.provider);
                if is_others && !resource.provider.is_empty() {
                    return Err(StateError::Resource {
                        urn: resource.urn,
                        reason: "it is of another provider than the state's, which only Pulumi can use: use Pulumi for this stack",
                    });
                }
                let resource = read(resource, owner)?;
                let is_known = match resource.delete {
                    true => deployment
                        .replaced
                        .contains_key(&(resource.urn.clone(), resource.id.clone())),
                    false => deployment.resources.contains_key(&resource.urn),
                };
                if is_known {
                    let urn = resource.urn.to_string();
                    let reason = "it stands there twice";
                    return Err(StateError::Resource { urn, reason });
                }
                deployment.put(resource);
            }
        }
        let pending = body
            .pending_operations
            .into_iter()
            .map(|operation| read_operation(operation, owner));
        deployment.pending_operations = pending.collect::<Result<_, StateError>>()?;
        Ok(deployment)
    }

    /// Writes the document.
    ///
    /// # Errors
    /// When it has no JSON.
    pub fn to_text(&self, owner: &Owner) -> Result<String, serde_json::Error> {
        let mut resources = vec![write_stack(owner, &self.outputs), write_provider(owner, &self.config)];
        let known: HashSet<&Urn> = self.all().map(|resource| &resource.urn).collect();
        resources.extend(self.in_order().into_iter().map(|resource| {
            let mut written = write(resource, owner);
            // What is gone is nothing to wait for, and `pulumi stack import` would refuse it.
            let dependencies = resource.dependencies.iter().filter(|urn| known.contains(urn));
            written.dependencies = dependencies.map(ToString::to_string).collect();
            written
        }));
        let operation = |operation: &PendingOperation| write_operation(operation, owner);
        serde_json::to_string_pretty(&Document {
            version: VERSION,
            deployment: Body {
                manifest: Manifest {
                    time: self.time.clone(),
                    ..Manifest::default()
                },
                resources,
                pending_operations: self.pending_operations.iter().map(operation).collect(),
            },
        })
    }
}

/// JSON as property values.
pub fn properties(json: Map<String, serde_json::Value>) -> PropertyMap {
    json.into_iter()
        .map(|(name, value)| (name, Value::from(value)))
        .collect()
}

/// Property values as JSON; what is not known is left out.
pub fn to_json(properties: &PropertyMap) -> Map<String, serde_json::Value> {
    let json = |(name, value): (&String, &Value)| Some((name.clone(), value.to_json()?));
    properties.iter().filter_map(json).collect()
}

fn owned(resource: &WireResource, owner: &Owner) -> Result<Urn, StateError> {
    let urn = Urn::parse(&resource.urn).ok_or_else(|| StateError::Resource {
        urn: resource.urn.clone(),
        reason: "it is no URN",
    })?;
    if urn.stack() != owner.stack || urn.project() != owner.project {
        return Err(StateError::OtherStack {
            found: format!("{}/{}", urn.project(), urn.stack()),
            expected: format!("{}/{}", owner.project, owner.stack),
        });
    }
    Ok(urn)
}

pub(crate) fn read(resource: WireResource, owner: &Owner) -> Result<ResourceState, StateError> {
    let urn = owned(&resource, owner)?;
    let bad = |reason| StateError::Resource {
        urn: resource.urn.clone(),
        reason,
    };
    let dependencies = resource.dependencies.iter().map(|dependency| Urn::parse(dependency));
    let dependencies = dependencies.collect::<Option<_>>();
    let dependencies = dependencies.ok_or_else(|| bad("a dependency of it is no URN"))?;
    if resource.external {
        return Err(bad(
            "it is external, which only Pulumi reads: use Pulumi for this stack",
        ));
    }
    if resource.pending_replacement || resource.taint {
        return Err(bad("Pulumi is about to replace it: let `pulumi up` do that first"));
    }
    if !resource.custom {
        return Err(bad("it is a component resource, which a stack file cannot declare"));
    }
    if urn.token() != resource.token {
        return Err(bad("its URN and its type disagree"));
    }
    Ok(ResourceState {
        urn,
        id: resource.id,
        inputs: properties(resource.inputs),
        outputs: properties(resource.outputs),
        dependencies,
        delete: resource.delete,
        protect: resource.protect,
        retain_on_delete: resource.retain_on_delete,
        import_id: resource.import_id.filter(|id| !id.is_empty()),
    })
}

pub(crate) fn read_operation(operation: WireOperation, owner: &Owner) -> Result<PendingOperation, StateError> {
    Ok(PendingOperation {
        kind: operation.kind,
        resource: read(operation.resource, owner)?,
    })
}

pub(crate) fn write(resource: &ResourceState, owner: &Owner) -> WireResource {
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
        protect: resource.protect,
        external: false,
        retain_on_delete: resource.retain_on_delete,
        import_id: resource.import_id.clone(),
        pending_replacement: false,
        taint: false,
    }
}

pub(crate) fn write_operation(operation: &PendingOperation, owner: &Owner) -> WireOperation {
    WireOperation {
        resource: write(&operation.resource, owner),
        kind: operation.kind,
    }
}

fn write_stack(owner: &Owner, outputs: &PropertyMap) -> WireResource {
    WireResource {
        urn: owner.stack_urn().to_string(),
        token: "pulumi:pulumi:Stack".to_string(),
        outputs: to_json(outputs),
        ..WireResource::default()
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
        ..WireResource::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn owner() -> Owner {
        Owner {
            project: "grants".into(),
            stack: "dev".into(),
            provider: "bindery".into(),
            version: "0.32.0".into(),
        }
    }

    pub(crate) fn resource(name: &str) -> ResourceState {
        ResourceState {
            urn: Urn::new("dev", "grants", "bindery:compute/v1:X", name),
            id: format!("id-{name}"),
            inputs: PropertyMap::from_iter([("member".to_string(), Value::from("user:ä@b.c"))]),
            outputs: PropertyMap::from_iter([("etag".to_string(), Value::from("BwX="))]),
            dependencies: Vec::new(),
            delete: false,
            protect: false,
            retain_on_delete: false,
            import_id: None,
        }
    }

    pub(crate) fn deployment() -> Deployment {
        let mut deployment = Deployment {
            time: "2026-01-01T00:00:00Z".into(),
            config: PropertyMap::from_iter([("project".to_string(), Value::from("p"))]),
            outputs: PropertyMap::from_iter([("who".to_string(), Value::from("me"))]),
            ..Deployment::default()
        };
        deployment.put(ResourceState {
            protect: true,
            retain_on_delete: true,
            import_id: Some("by hand".into()),
            ..resource("a")
        });
        deployment.put(ResourceState {
            dependencies: vec![resource("a").urn],
            delete: true,
            ..resource("b")
        });
        deployment.pending_operations.push(PendingOperation {
            kind: OperationType::Creating,
            resource: resource("c"),
        });
        deployment
    }

    #[test]
    fn a_deployment_reads_back_as_it_was_written() {
        let text = deployment().to_text(&owner()).unwrap();
        assert_eq!(Deployment::parse(&text, &owner()).unwrap(), deployment());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["deployment"]["resources"][0]["type"], "pulumi:pulumi:Stack");
        assert_eq!(json["deployment"]["resources"][0]["outputs"]["who"], "me");
        assert_eq!(
            json["deployment"]["resources"][2]["provider"],
            "urn:pulumi:dev::grants::pulumi:providers:bindery::default_0_32_0::embedded"
        );
        assert_eq!(json["deployment"]["pending_operations"][0]["type"], "creating");
    }

    #[test]
    fn what_is_not_this_stacks_state_is_refused() {
        let parse = |text: &str, owner: &Owner| Deployment::parse(text, owner).unwrap_err();
        assert!(matches!(parse("{", &owner()), StateError::Form(_)));
        assert!(matches!(parse("[]", &owner()), StateError::Version(0)));
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
        let acme = Owner {
            provider: "acme".into(),
            ..owner()
        };
        assert!(matches!(parse(&text, &acme), StateError::OtherProvider { .. }));
        let with = |more: &str| text.replacen("\"id\": \"id-a\"", &format!("\"id\": \"id-a\", {more}"), 1);
        assert!(matches!(
            parse(&with("\"external\": true"), &owner()),
            StateError::Resource { .. }
        ));
        let secret = with(&format!("\"x\": {{\"{SECRET}\": \"1b47\"}}"));
        assert!(matches!(parse(&secret, &owner()), StateError::Secret));
        let twice = text
            .replace("::b\"", "::a\"")
            .replace("\"delete\": true", "\"delete\": false");
        assert!(matches!(parse(&twice, &owner()), StateError::Resource { .. }));
    }
}
