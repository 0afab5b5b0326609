//! `import`: prints the YAML that adopts what exists already. It reads, and changes nothing.

use bindery_resource::{PropertyMap, Urn, Value, nearest};
use bindery_sandbox::Component;
use bindery_stack::yaml::to_yaml;
use bindery_stack::{CheckError, Provider};
use serde_json::json;

use crate::args::Import;
use crate::component;
use crate::failure::Failure;
use crate::report::Report;
use crate::session::{Configuration, Session};
use crate::stack;
use bindery_stack::configuration::Needs;

/// Prints the YAML of a resource that exists.
pub async fn import(options: &Import, report: &Report) -> Result<(), Failure> {
    if options.of.emulate && options.file.is_none() {
        return Err(
            Failure::input("`--emulate` needs the stack file whose services are emulated").with_hint("pass `--file`"),
        );
    }
    let file = options
        .file
        .as_ref()
        .map(|path| stack::read(path, report))
        .transpose()?;
    let runtime = component::runtime(report)?;
    let loaded = component::load(&runtime, options.of.component.as_ref())?;
    let token = token(&loaded.component, &options.token)?;
    let values = stack::configuration(file.as_ref(), &loaded, &options.services.config, Needs::Settings)?;
    let policies = file.as_ref().zip(options.file.as_ref()).map(|(file, path)| {
        let paths = stack::paths(file, path, &options.of);
        paths.policies()
    });
    let configuration = Configuration {
        kept: None,
        file: values.settings,
        given: values.given,
        endpoints: &options.services.endpoint,
        emulate: options.of.emulate,
        policies: policies.as_deref(),
        timeout: stack::timeout(options.services.timeout, file.as_ref()),
    };
    let started = Session::start(&runtime, loaded, configuration).await;
    let session = started.map_err(|failure| stack::in_place(file.as_ref(), &options.services.config, failure))?;
    let urn = Urn::new("import", "import", &token, &options.name);
    let context = session.context(report.listener(&urn));
    let found = session.tenant.read(&context, &token, &options.id, None).await;
    let found = found.map_err(Failure::run)?.ok_or_else(|| {
        Failure::run(format!("nothing exists under `{}`", options.id)).with_hint("is the id of this resource type?")
    })?;
    let inputs = needed(&session, &urn, &found.outputs).await?;
    let object = |fields: Vec<(&str, Value)>| {
        Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key.to_string(), value))
                .collect(),
        )
    };
    let resource = object(vec![
        ("type", Value::String(token)),
        ("properties", escaped(Value::Object(inputs))),
        ("options", object(vec![("import", Value::String(found.id.clone()))])),
    ]);
    let text = to_yaml(&object(vec![("resources", object(vec![(&options.name, resource)]))])).map_err(Failure::run)?;
    report.field("id", json!(found.id));
    report.answer(&text, "yaml", json!(text));
    Ok(())
}

/// A stack file reads `$` as the start of a reference.
fn escaped(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace('$', "$$")),
        Value::List(items) => Value::List(items.into_iter().map(escaped).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, escaped(value))).collect())
        }
        value => value,
    }
}

/// The token that is meant: a whole one, or the end of one that no other has.
fn token(component: &Component, text: &str) -> Result<String, Failure> {
    let tokens: Vec<String> = component.types.keys().map(ToString::to_string).collect();
    if tokens.iter().any(|token| token == text) {
        return Ok(text.to_string());
    }
    let ends = |token: &&String| token.ends_with(&format!(":{text}"));
    let mut meant = tokens.iter().filter(ends);
    match (meant.next(), meant.next()) {
        (Some(token), None) => Ok(token.clone()),
        _ => {
            let failure = Failure::input(format!("the provider has no resource type `{text}`"));
            let names = tokens
                .iter()
                .flat_map(|token| [token.as_str(), token.rsplit(':').next().unwrap_or_default()]);
            Err(match nearest(text, names) {
                Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
                None => failure.with_hint(format!("it has `{}`", tokens.join("`, `"))),
            })
        }
    }
}

/// The inputs that declare what was found: those that are required, and of the others those without which it would be
/// another.
async fn needed(session: &Session, urn: &Urn, outputs: &PropertyMap) -> Result<PropertyMap, Failure> {
    let ty = session.tenant.component().resource_type(urn.token());
    let ty = ty.ok_or_else(|| Failure::run(format!("there is no resource type `{}`", urn.token())))?;
    let value = |name: &String| outputs.get(name).filter(|value| **value != Value::Null).cloned();
    let args = ty
        .args
        .properties
        .iter()
        .filter_map(|property| Some((property.name.clone(), value(&property.name)?)));
    let mut inputs: PropertyMap = args.collect();
    let whole = check(session, urn, &inputs).await?;
    for property in ty.args.properties.iter().filter(|property| property.optional) {
        let mut fewer = inputs.clone();
        if fewer.shift_remove(&property.name).is_some()
            && check(session, urn, &fewer).await.is_ok_and(|checked| checked == whole)
        {
            inputs = fewer;
        }
    }
    Ok(inputs)
}

async fn check(session: &Session, urn: &Urn, inputs: &PropertyMap) -> Result<PropertyMap, Failure> {
    match session.check(urn, inputs).await {
        Ok(checked) => Ok(checked.inputs),
        Err(CheckError::Failures(failures)) => {
            let reasons: Vec<String> = failures
                .iter()
                .map(|failure| format!("`{}`: {}", failure.path, failure.reason))
                .collect();
            Err(Failure::run(format!(
                "what exists cannot be declared: {}",
                reasons.join("; ")
            )))
        }
        Err(error) => Err(Failure::run(error)),
    }
}
