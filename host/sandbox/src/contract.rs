//! The contract `bindery:engine@1`, as it is found in a component: its version, and the functions of a resource type.

use thiserror::Error;
use wasmtime::Engine;
use wasmtime::component::types::{self, ComponentItem, Type};

use crate::schema::{RecordType, UnsupportedType, record_type};
use crate::token::InterfaceId;

/// The major version that this host speaks.
pub const MAJOR: u64 = 1;

/// Why a component is not a provider that this host can run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ContractError {
    /// It was built for another version.
    #[error(
        "the component was built for `bindery:engine@{built_for}`, and this host speaks `bindery:engine@{MAJOR}`: \
         rebuild the component, or use a host of its version"
    )]
    Version {
        /// The version that it names.
        built_for: String,
    },
    /// It names no version.
    #[error("the component does not use `bindery:engine/types`, so it is not a provider")]
    NotAProvider,
    /// There is no `about`.
    #[error("the component exports no interface named `about`, so it is not a provider")]
    NoAbout,
    /// There is no resource type.
    #[error("the component exports no resource type: no interface named `…-plan` beside one without that ending")]
    NoResourceTypes,
    /// A function is missing or of another form.
    #[error("`{interface}`: {what}")]
    Function {
        /// Where.
        interface: String,
        /// What was expected.
        what: String,
    },
    /// A property has a type that no engine has.
    #[error("`{interface}`: {source}")]
    Type {
        /// Where.
        interface: String,
        /// Which.
        #[source]
        source: UnsupportedType,
    },
}

/// Reads the version of the contract that a component was built for.
///
/// # Errors
/// When it names none, or one of another major version.
pub fn check_version(engine: &Engine, component: &types::Component) -> Result<String, ContractError> {
    let ids = component
        .imports(engine)
        .map(|(name, _)| name)
        .chain(component.exports(engine).map(|(name, _)| name));
    let id = ids
        .filter_map(InterfaceId::parse)
        .find(|id| id.namespace == "bindery" && id.package == "engine" && id.name == "types")
        .ok_or(ContractError::NotAProvider)?;
    if id.major != MAJOR {
        return Err(ContractError::Version { built_for: id.version });
    }
    Ok(id.version)
}

/// The records of a resource type.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// The configuration.
    pub config: RecordType,
    /// The inputs.
    pub args: RecordType,
    /// The outputs, with `id`.
    pub state: RecordType,
}

/// Reads the records of a resource type from the functions of its `-plan` interface.
///
/// # Errors
/// When a function is missing or has other parameters than the contract says.
pub fn plan_records(
    engine: &Engine,
    interface: &str,
    instance: &types::ComponentInstance,
) -> Result<Records, ContractError> {
    let check = function(engine, interface, instance, "check", &["config", "args", "unknown"])?;
    let diff = function(
        engine,
        interface,
        instance,
        "diff",
        &["config", "old", "new", "unknown"],
    )?;
    function(engine, interface, instance, "footprint-of", &["config", "old"])?;
    let state = record(interface, &diff, 1, "state")?;
    let args = record(interface, &check, 1, "args")?;
    let wrong = |what: String| ContractError::Function {
        interface: interface.to_string(),
        what,
    };
    match state.property("id") {
        Some(id) if id.ty == crate::schema::PropertyType::String && !id.optional => {}
        _ => return Err(wrong("its state has no `id: string`".to_string())),
    }
    if let Some(missing) = args
        .properties
        .iter()
        .find(|property| state.property(&property.name).is_none())
    {
        return Err(wrong(format!(
            "its state does not repeat the input `{}`",
            missing.field
        )));
    }
    Ok(Records {
        config: record(interface, &check, 0, "config")?,
        args,
        state,
    })
}

/// Checks that the lifecycle interface of a resource type has its functions. True where it has `commit` too.
///
/// # Errors
/// When a function is missing or has other parameters than the contract says.
pub fn check_lifecycle(
    engine: &Engine,
    interface: &str,
    instance: &types::ComponentInstance,
) -> Result<bool, ContractError> {
    function(engine, interface, instance, "create", &["config", "args"])?;
    function(engine, interface, instance, "read", &["config", "id", "last"])?;
    function(engine, interface, instance, "update", &["config", "old", "new"])?;
    function(engine, interface, instance, "delete", &["config", "old"])?;
    let has_commit = instance.get_export(engine, "commit").is_some();
    if has_commit {
        function(engine, interface, instance, "commit", &["config", "operations"])?;
    }
    Ok(has_commit)
}

/// Reads the configuration's record from `about`.
///
/// # Errors
/// When `configure` is missing or has other parameters than the contract says.
pub fn about_config(
    engine: &Engine,
    interface: &str,
    instance: &types::ComponentInstance,
) -> Result<RecordType, ContractError> {
    let configure = function(engine, interface, instance, "configure", &["config", "unknown"])?;
    record(interface, &configure, 0, "config")
}

fn function(
    engine: &Engine,
    interface: &str,
    instance: &types::ComponentInstance,
    name: &str,
    params: &[&str],
) -> Result<types::ComponentFunc, ContractError> {
    let wrong = |what: String| ContractError::Function {
        interface: interface.to_string(),
        what,
    };
    let function = match instance.get_export(engine, name).map(|export| export.ty) {
        Some(ComponentItem::ComponentFunc(function)) => function,
        _ => return Err(wrong(format!("it has no function `{name}`"))),
    };
    if !function
        .params()
        .map(|(name, _)| name.to_string())
        .eq(params.iter().map(ToString::to_string))
    {
        return Err(wrong(format!("`{name}` does not take ({})", params.join(", "))));
    }
    Ok(function)
}

fn record(
    interface: &str,
    function: &types::ComponentFunc,
    index: usize,
    name: &str,
) -> Result<RecordType, ContractError> {
    match function.params().nth(index).map(|(_, ty)| ty) {
        Some(Type::Record(record)) => record_type(&record, name).map_err(|source| ContractError::Type {
            interface: interface.to_string(),
            source,
        }),
        _ => Err(ContractError::Function {
            interface: interface.to_string(),
            what: format!("`{name}` is not a record"),
        }),
    }
}
