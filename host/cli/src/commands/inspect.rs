//! `inspect`: what a component is, read from its bytes. Nothing of it runs.

use std::fmt::Write;

use bindery_sandbox::Component;
use bindery_sandbox::package::ComponentFile;
use bindery_sandbox::schema::{PropertyType, RecordType};
use serde_json::{Value, json};

use crate::component;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::{FAINT, HEADING};

/// Shows what a component is.
pub fn inspect(file: Option<&ComponentFile>, report: &Report) -> Result<(), Failure> {
    let component = component::compile(&component::runtime(report)?, file)?.documented();
    let size = component::bytes(file)?.len();
    report.answer(&text(&component, size), "component", document(&component, size));
    Ok(())
}

fn text(component: &Component, size: usize) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    line(format!("{HEADING}{} {}{HEADING:#}", component.name, component.version));
    line(format!("   contract  bindery:engine@{}", component.contract));
    line(format!("   digest    {}", component.digest));
    line(format!("   size      {size} bytes"));
    line(format!("{HEADING}Imports{HEADING:#}"));
    if component.imports.is_empty() {
        line("   none: it can only be asked what a declaration means".to_string());
    }
    component.imports.iter().for_each(|import| line(format!("   {import}")));
    line(format!("{HEADING}Configuration{HEADING:#}"));
    record(&component.config, 3, &mut line);
    for (token, ty) in &component.types {
        line(format!("{HEADING}{token}{HEADING:#}"));
        documented(ty.docs.as_deref(), 3, &mut line);
        line("   inputs".to_string());
        record(&ty.args, 5, &mut line);
        line("   outputs".to_string());
        record(&outputs_only(&ty.args, &ty.state), 5, &mut line);
    }
    text
}

/// The outputs that are not inputs too.
fn outputs_only(args: &RecordType, state: &RecordType) -> RecordType {
    let mut state = state.clone();
    state
        .properties
        .retain(|property| args.property(&property.name).is_none());
    state
}

fn record(record: &RecordType, indent: usize, line: &mut impl FnMut(String)) {
    for property in &record.properties {
        let optional = if property.optional { "?" } else { "" };
        let space = " ".repeat(indent);
        line(format!(
            "{space}{}{optional}  {FAINT}{}{FAINT:#}",
            property.name,
            property.ty.describe()
        ));
        documented(property.docs.as_deref(), indent + 4, line);
        if let PropertyType::Record(inner) = &property.ty {
            self::record(inner, indent + 4, line);
        }
    }
}

fn documented(docs: Option<&str>, indent: usize, line: &mut impl FnMut(String)) {
    for docs in docs.unwrap_or_default().lines() {
        line(format!("{}{docs}", " ".repeat(indent)));
    }
}

fn document(component: &Component, size: usize) -> Value {
    let types = component.types.iter().map(|(token, ty)| {
        json!({
            "token": token.to_string(),
            "docs": ty.docs,
            "inputs": properties(&ty.args),
            "outputs": properties(&ty.state),
        })
    });
    json!({
        "name": component.name,
        "version": component.version,
        "contract": component.contract,
        "digest": component.digest.to_string(),
        "size": size,
        "imports": component.imports,
        "config": properties(&component.config),
        "resourceTypes": types.collect::<Vec<_>>(),
    })
}

fn properties(record: &RecordType) -> Vec<Value> {
    let property = |property: &bindery_sandbox::schema::Property| {
        let inner = match &property.ty {
            PropertyType::Record(inner) => Some(properties(inner)),
            _ => None,
        };
        let mut json = json!({
            "name": property.name,
            "type": property.ty.describe(),
            "required": !property.optional,
            "docs": property.docs,
        });
        if let (Some(inner), Some(fields)) = (inner, json.as_object_mut()) {
            fields.insert("properties".to_string(), json!(inner));
        }
        json
    };
    record.properties.iter().map(property).collect()
}
