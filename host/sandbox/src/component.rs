//! A loaded component: what it is, found without running it.

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use wasmparser::Parser;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{ComponentExportIndex, InstancePre, Linker};
use wasmtime::{Engine, component};

use crate::cache::Cache;
use crate::contract::{self, ContractError};
use crate::docs::{self, Docs};
use crate::imports::{self, ForbiddenImport};
use crate::limits;
use crate::schema::RecordType;
use crate::store::CallState;
use crate::token::{InterfaceId, Token};

/// A component's SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Why a component cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It is larger than what is compiled.
    #[error("the component has {0} bytes; at most {limit} are compiled", limit = limits::COMPONENT_BYTES)]
    TooLarge(usize),
    /// It is not a component, or not a valid one.
    #[error("not a WebAssembly component: {0}")]
    Invalid(String),
    /// It wants more than a provider gets.
    #[error(transparent)]
    Import(#[from] ForbiddenImport),
    /// It does not keep to the contract.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

/// One resource type of a component.
#[derive(Debug, Clone)]
pub struct ResourceType {
    /// Its token.
    pub token: Token,
    /// What it is for: see [`Component::documented`].
    pub docs: Option<String>,
    /// Its inputs.
    pub args: RecordType,
    /// Its outputs, `id` among them.
    pub state: RecordType,
    /// The interface of its plan functions, which defines its inputs and outputs.
    plan_interface: String,
    pub(crate) plan: PlanFunctions,
    pub(crate) lifecycle: Option<LifecycleFunctions>,
}

#[derive(Debug, Clone)]
pub(crate) struct PlanFunctions {
    pub(crate) check: ComponentExportIndex,
    pub(crate) diff: ComponentExportIndex,
    pub(crate) footprint_of: ComponentExportIndex,
}

#[derive(Debug, Clone)]
pub(crate) struct LifecycleFunctions {
    pub(crate) create: ComponentExportIndex,
    pub(crate) read: ComponentExportIndex,
    pub(crate) update: ComponentExportIndex,
    pub(crate) delete: ComponentExportIndex,
    /// Many of them at once, where the component can do that.
    pub(crate) commit: Option<ComponentExportIndex>,
}

/// A provider component, compiled. Cheap to run, not so cheap to clone.
#[derive(Clone)]
pub struct Component {
    /// The provider's name: the namespace of its `about`.
    pub name: String,
    /// The provider's version: that of its `about`.
    pub version: String,
    /// What it is for: see [`Component::documented`].
    pub docs: Option<String>,
    /// The version of the contract that it was built for.
    pub contract: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// The interfaces that it imports functions or resources from.
    pub imports: Vec<String>,
    /// Its configuration.
    pub config: RecordType,
    /// Its resource types.
    pub types: BTreeMap<Token, ResourceType>,
    /// The interface that says what it is and defines its configuration.
    about_interface: String,
    /// The WIT packages that it carries, encoded.
    wit: Vec<Vec<u8>>,
    pub(crate) configure: ComponentExportIndex,
    pub(crate) instance: InstancePre<CallState>,
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} {}", self.name, self.version, self.digest)
    }
}

impl Component {
    pub(crate) fn load(
        engine: &Engine,
        linker: &Linker<CallState>,
        cache: Option<&Cache>,
        bytes: &[u8],
    ) -> Result<Self, LoadError> {
        if bytes.len() > limits::COMPONENT_BYTES {
            return Err(LoadError::TooLarge(bytes.len()));
        }
        if !Parser::is_component(bytes) {
            let what = if Parser::is_core_wasm(bytes) {
                "it is a module; a component is made from it with `wasm32-wasip2` as its target"
            } else {
                "it does not start as one does"
            };
            return Err(LoadError::Invalid(what.to_string()));
        }
        let invalid = |error: wasmtime::Error| LoadError::Invalid(format!("{error:#}"));
        let digest = Digest::of(bytes);
        let compiled = match cache {
            Some(cache) => cache.compiled(engine, bytes, &digest),
            None => component::Component::from_binary(engine, bytes),
        };
        let compiled = compiled.map_err(invalid)?;
        let ty = compiled.component_type();
        let contract = contract::check_version(engine, &ty)?;
        let imports = imports::check(engine, &ty)?;
        let exports = Exports {
            engine,
            component: &compiled,
            ty: &ty,
        };
        let about = exports.about()?;
        let types = exports.resource_types()?;
        Ok(Self {
            docs: None,
            wit: docs::sections(bytes).into_iter().map(Vec::from).collect(),
            about_interface: about.interface,
            name: about.id.namespace,
            version: about.id.version,
            contract,
            digest,
            imports,
            config: about.config,
            types,
            configure: about.configure,
            instance: linker.instantiate_pre(&compiled).map_err(invalid)?,
        })
    }

    /// The same with what it says about itself, where it carries docs: what it, its types and their properties are for, and the
    /// names of its records. It runs without, and decoding them takes as long as loading it.
    #[must_use]
    pub fn documented(&self) -> Self {
        let docs = Docs::of(&self.wit);
        let mut documented = self.clone();
        let package = InterfaceId::parse(&self.about_interface)
            .map(|id| format!("{}:{}@{}", id.namespace, id.package, id.version));
        documented.docs = package.and_then(|package| docs.package(&package).map(String::from));
        docs.describe(&self.about_interface, "config", &mut documented.config);
        for ty in documented.types.values_mut() {
            let lifecycle = ty.plan_interface.replacen("-plan@", "@", 1);
            let text = docs
                .interface(&lifecycle)
                .or_else(|| docs.interface(&ty.plan_interface));
            ty.docs = text.map(String::from);
            docs.describe(&ty.plan_interface, "args", &mut ty.args);
            docs.describe(&ty.plan_interface, "state", &mut ty.state);
        }
        documented
    }

    /// The resource type of a token.
    pub fn resource_type(&self, token: &str) -> Option<&ResourceType> {
        self.types.get(&Token::from(token))
    }
}

struct About {
    id: InterfaceId,
    interface: String,
    config: RecordType,
    configure: ComponentExportIndex,
}

/// The exports of a component, by the contract's rules.
struct Exports<'a> {
    engine: &'a Engine,
    component: &'a component::Component,
    ty: &'a component::types::Component,
}

impl Exports<'_> {
    fn interfaces(&self) -> impl Iterator<Item = (String, InterfaceId, component::types::ComponentInstance)> {
        self.ty
            .exports(self.engine)
            .filter_map(|(name, export)| match export.ty {
                ComponentItem::ComponentInstance(instance) => {
                    Some((name.to_string(), InterfaceId::parse(name)?, instance))
                }
                _ => None,
            })
    }

    fn function(&self, interface: &str, name: &str) -> Result<ComponentExportIndex, ContractError> {
        self.component
            .get_export_index(None, interface)
            .and_then(|interface| self.component.get_export_index(Some(&interface), name))
            .ok_or_else(|| ContractError::Function {
                interface: interface.to_string(),
                what: format!("it has no function `{name}`"),
            })
    }

    fn about(&self) -> Result<About, ContractError> {
        let (interface, id, instance) = self
            .interfaces()
            .find(|(_, id, _)| id.name == "about")
            .ok_or(ContractError::NoAbout)?;
        Ok(About {
            config: contract::about_config(self.engine, &interface, &instance)?,
            configure: self.function(&interface, "configure")?,
            id,
            interface,
        })
    }

    fn resource_types(&self) -> Result<BTreeMap<Token, ResourceType>, ContractError> {
        let interfaces: Vec<_> = self.interfaces().collect();
        let mut types = BTreeMap::new();
        for (plan, plan_id, instance) in &interfaces {
            let Some(name) = plan_id.name.strip_suffix("-plan") else {
                continue;
            };
            let id = InterfaceId {
                name: name.to_string(),
                ..plan_id.clone()
            };
            let lifecycle = interfaces.iter().find(|(_, other, _)| *other == id);
            let records = contract::plan_records(self.engine, plan, instance)?;
            let lifecycle = match lifecycle {
                Some((interface, _, instance)) => {
                    let has_commit = contract::check_lifecycle(self.engine, interface, instance)?;
                    let commit = has_commit.then(|| self.function(interface, "commit")).transpose()?;
                    Some(LifecycleFunctions {
                        create: self.function(interface, "create")?,
                        read: self.function(interface, "read")?,
                        update: self.function(interface, "update")?,
                        delete: self.function(interface, "delete")?,
                        commit,
                    })
                }
                None => None,
            };
            let token = Token::of_interface(&id);
            let resource = ResourceType {
                token: token.clone(),
                docs: None,
                plan_interface: plan.clone(),
                args: records.args,
                state: records.state,
                plan: PlanFunctions {
                    check: self.function(plan, "check")?,
                    diff: self.function(plan, "diff")?,
                    footprint_of: self.function(plan, "footprint-of")?,
                },
                lifecycle,
            };
            types.insert(token, resource);
        }
        if types.is_empty() {
            Err(ContractError::NoResourceTypes)
        } else {
            Ok(types)
        }
    }
}
