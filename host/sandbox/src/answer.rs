//! Takes a guest's answer apart. A part that is not there means that the component does not keep to the contract.

use bindery_resource::{Change, ChangeKind, CheckFailure, Footprint, PropertyPath};
use std::time::Duration;
use wasmtime::component::Val;

use crate::error::{ErrorCode, OperationError};

/// What was found instead of what the contract says.
pub type Malformed = String;

/// A record whose fields are taken one by one.
pub struct Record(Vec<(String, Val)>);

impl Record {
    pub fn of(value: Val) -> Result<Self, Malformed> {
        match value {
            Val::Record(fields) => Ok(Self(fields)),
            _ => Err("something else than a record".to_string()),
        }
    }

    pub fn take(&mut self, field: &str) -> Result<Val, Malformed> {
        let position = self.0.iter().position(|(name, _)| name == field);
        position
            .map(|position| self.0.swap_remove(position).1)
            .ok_or_else(|| format!("a record without `{field}`"))
    }

    fn text(&mut self, field: &str) -> Result<String, Malformed> {
        text(self.take(field)?)
    }
}

pub fn text(value: Val) -> Result<String, Malformed> {
    match value {
        Val::String(text) | Val::Enum(text) => Ok(text),
        _ => Err("something else than a string".to_string()),
    }
}

pub fn list(value: Val) -> Result<Vec<Val>, Malformed> {
    match value {
        Val::List(items) => Ok(items),
        _ => Err("something else than a list".to_string()),
    }
}

pub fn option(value: Val) -> Result<Option<Val>, Malformed> {
    match value {
        Val::Option(value) => Ok(value.map(|value| *value)),
        _ => Err("something else than an option".to_string()),
    }
}

/// A result; its payloads are none where the type has none.
pub fn result(value: Val) -> Result<Result<Option<Val>, Option<Val>>, Malformed> {
    match value {
        Val::Result(Ok(value)) => Ok(Ok(value.map(|value| *value))),
        Val::Result(Err(value)) => Ok(Err(value.map(|value| *value))),
        _ => Err("something else than a result".to_string()),
    }
}

pub fn payload(value: Option<Val>) -> Result<Val, Malformed> {
    value.ok_or_else(|| "a result without its value".to_string())
}

fn path(text: &str) -> Result<PropertyPath, Malformed> {
    PropertyPath::parse(text).ok_or_else(|| format!("`{}`, which is no path", crate::output::clean(text)))
}

pub fn failure(value: Val) -> Result<CheckFailure, Malformed> {
    let mut record = Record::of(value)?;
    let reason = crate::output::message(&record.text("reason")?);
    Ok(CheckFailure::new(path(&record.text("path")?)?, reason))
}

pub fn failures(value: Val) -> Result<Vec<CheckFailure>, Malformed> {
    list(value)?.into_iter().map(failure).collect()
}

pub fn footprint(value: Val) -> Result<Footprint, Malformed> {
    let mut record = Record::of(value)?;
    Ok(Footprint {
        target: record.text("target")?,
        claim: record.text("claim")?,
    })
}

pub fn change(value: Val) -> Result<Change, Malformed> {
    let mut record = Record::of(value)?;
    Ok(Change {
        path: path(&record.text("path")?)?,
        kind: match record.text("kind")?.as_str() {
            "add" => ChangeKind::Add,
            "update" => ChangeKind::Update,
            "remove" => ChangeKind::Remove,
            other => return Err(format!("a change of kind `{other}`")),
        },
        replaces: record.take("replaces")? == Val::Bool(true),
    })
}

pub fn error(value: Val) -> Result<OperationError, Malformed> {
    let mut record = Record::of(value)?;
    let retry_after = match option(record.take("retry-after")?)? {
        Some(Val::U32(milliseconds)) => Some(Duration::from_millis(milliseconds.into())),
        _ => None,
    };
    Ok(OperationError {
        code: ErrorCode::from_name(&record.text("code")?),
        message: crate::output::message(&record.text("message")?),
        may_have_effect: record.text("effect")? == "unknown",
        retry_after,
    })
}
