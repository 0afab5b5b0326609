//! A provider component's types and docs as a Pulumi package schema, for any component of the contract.
//!
//! Records become object types named after their interface: `condition` of `bindery:iam/types@1.0.0` is
//! `bindery:iam/v1:Condition`. Enums and 64-bit integers are strings, as they are to the engine.

use std::collections::{BTreeMap, BTreeSet};

use bindery_credentials::Key;
use bindery_sandbox::Component;
use bindery_sandbox::component::ResourceType;
use bindery_sandbox::schema::{Integer, Property, PropertyType, RecordType};
use heck::ToUpperCamelCase;
use serde_json::{Map, Value, json};

/// What a schema is made of.
#[derive(Debug, Clone, Copy)]
pub struct Served<'s> {
    /// The component.
    pub component: &'s Component,
    /// The package's name: the first part of every token.
    pub name: &'s str,
    /// The environment variables that a configuration key defaults to.
    pub environment: &'s BTreeMap<String, Vec<String>>,
    /// The host's own configuration keys.
    pub host_keys: &'s [Key],
}

impl Served<'_> {
    /// The package schema.
    pub fn schema(&self) -> Value {
        let component = self.component.documented();
        let mut types = Types {
            own: &self.component.name,
            name: self.name,
            known: BTreeMap::new(),
        };
        let resources: Map<String, Value> = component
            .types
            .values()
            .map(|ty| {
                let token = types.token(ty.token.as_str());
                let resource = types.resource(ty);
                (token, resource)
            })
            .collect();
        let config = self.config(&component.config, &mut types);
        let (name, version) = (self.name, &self.component.version);
        without_nulls(json!({
            "name": name,
            "version": version,
            "description": component.docs.as_deref().map(one_paragraph),
            "keywords": ["pulumi", name, "kind/native"],
            "meta": { "moduleFormat": "(.*)" },
            "language": languages(name),
            "config": { "variables": config },
            "types": types.known.into_iter().map(|(token, (_, ty))| (token, ty)).collect::<Map<_, _>>(),
            "provider": {
                "description": format!("The configuration of the `{name}` package."),
                "inputProperties": config,
            },
            "resources": resources,
        }))
    }

    fn config(&self, config: &RecordType, types: &mut Types<'_>) -> Map<String, Value> {
        let mut variables = Map::new();
        for property in &config.properties {
            let mut described = types.property(&format!("{}:config:Config", self.component.name), property);
            if let (Some(names), Some(fields)) = (self.environment.get(&property.name), described.as_object_mut()) {
                fields.insert("defaultInfo".to_string(), json!({ "environment": names }));
            }
            variables.insert(property.name.clone(), described);
        }
        for key in self.host_keys {
            let docs = match key.variables {
                [] => key.docs.to_string(),
                variables => format!(
                    "{} It defaults to `{}` of the environment.",
                    key.docs,
                    variables.join("`, `")
                ),
            };
            let mut described = if key.is_list {
                json!({ "type": "array", "items": { "type": "string" }, "description": docs })
            } else {
                json!({ "type": "string", "description": docs })
            };
            if let (true, Some(fields)) = (key.is_secret, described.as_object_mut()) {
                fields.insert("secret".to_string(), true.into());
            }
            variables.insert(key.name.to_string(), described);
        }
        variables
    }
}

/// A component's token under the name of a package.
pub fn served_token(own_name: &str, name: &str, token: &str) -> String {
    match token.strip_prefix(own_name).and_then(|rest| rest.strip_prefix(':')) {
        Some(rest) => format!("{name}:{rest}"),
        None => token.to_string(),
    }
}

/// How the packages of each language are called.
fn languages(name: &str) -> Value {
    let pascal = name.to_upper_camel_case();
    let lower = pascal.to_lowercase();
    json!({
        "nodejs": { "packageName": format!("@{lower}/pulumi"), "respectSchemaVersion": true },
        "python": {
            "packageName": format!("pulumi_{}", name.replace('-', "_")),
            "respectSchemaVersion": true,
            "pyproject": { "enabled": true },
        },
        "go": { "generateResourceContainerTypes": true, "respectSchemaVersion": true },
        "csharp": { "rootNamespace": format!("{pascal}.Pulumi"), "respectSchemaVersion": true },
        "java": { "basePackage": format!("dev.{lower}") },
    })
}

/// The object types, by token, as they are met.
struct Types<'s> {
    /// The component's own name, which the package's takes the place of.
    own: &'s str,
    name: &'s str,
    known: BTreeMap<String, (RecordType, Value)>,
}

impl Types<'_> {
    /// A token as this package serves it.
    fn token(&self, own: &str) -> String {
        served_token(self.own, self.name, own)
    }

    fn resource(&mut self, ty: &ResourceType) -> Value {
        let member = ty.token.as_str().to_string();
        let mut outputs = ty.state.clone();
        outputs.properties.retain(|property| property.name != "id");
        let (inputs, required_inputs) = self.properties(&member, &ty.args);
        let (properties, required) = self.properties(&member, &outputs);
        without_nulls(json!({
            "description": ty.docs.as_deref().map(one_paragraph),
            "inputProperties": inputs,
            "requiredInputs": required_inputs,
            "properties": properties,
            "required": required,
        }))
    }

    /// The properties of a record, and the names of those that are required.
    fn properties(&mut self, owner: &str, record: &RecordType) -> (Map<String, Value>, BTreeSet<String>) {
        let described = record
            .properties
            .iter()
            .map(|property| (property.name.clone(), self.property(owner, property)))
            .collect();
        let required = record.properties.iter().filter(|property| !property.optional);
        (described, required.map(|property| property.name.clone()).collect())
    }

    fn property(&mut self, owner: &str, property: &Property) -> Value {
        let inner = format!("{owner}{}", property.name.to_upper_camel_case());
        let mut described = self.value(&inner, &property.ty);
        let mut docs = property.docs.as_deref().map(one_paragraph).unwrap_or_default();
        if let PropertyType::Enum(cases) = &property.ty {
            let cases = format!("One of `{}`.", cases.join("`, `"));
            docs = if docs.is_empty() {
                cases
            } else {
                format!("{docs} {cases}")
            };
        }
        if let (false, Some(fields)) = (docs.is_empty(), described.as_object_mut()) {
            fields.insert("description".to_string(), docs.into());
        }
        described
    }

    /// A type. `place` is the token that an object has which has no name of its own.
    fn value(&mut self, place: &str, ty: &PropertyType) -> Value {
        match ty {
            PropertyType::Bool => json!({ "type": "boolean" }),
            // What is called an integer there has 32 bits and a sign.
            PropertyType::Integer(Integer::U32) | PropertyType::Number(_) => json!({ "type": "number" }),
            PropertyType::Integer(_) => json!({ "type": "integer" }),
            PropertyType::Integer64 { .. } | PropertyType::String | PropertyType::Enum(_) => {
                json!({ "type": "string" })
            }
            PropertyType::List(item) => json!({ "type": "array", "items": self.value(place, item) }),
            PropertyType::Map(item) => json!({ "type": "object", "additionalProperties": self.value(place, item) }),
            PropertyType::Record(record) => {
                let token = self.record(place, record);
                json!({ "$ref": format!("#/types/{}", token.replace('/', "%2F")) })
            }
        }
    }

    /// The token of a record's type, which is known from then on.
    fn record(&mut self, place: &str, record: &RecordType) -> String {
        let token = self.token_of(place, record);
        if !self.known.contains_key(&token) {
            // Known before its fields are looked at, and described after.
            self.known.insert(token.clone(), (record.clone(), Value::Null));
            let (properties, required) = self.properties(place, record);
            let described = without_nulls(json!({
                "type": "object",
                "description": record.docs.as_deref().map(one_paragraph),
                "properties": properties,
                "required": required,
            }));
            self.known.insert(token.clone(), (record.clone(), described));
        }
        token
    }

    /// The token of a record: after its own name, after its interface's too where another record has that, and after its place
    /// where it has none.
    fn token_of(&self, place: &str, record: &RecordType) -> String {
        let after_place = self.token(place);
        let named = record.name.iter().flat_map(|own| {
            let module = format!(
                "{}:{}/v{}",
                own.interface.namespace, own.interface.package, own.interface.major
            );
            let members = [own.name.clone(), format!("{}-{}", own.interface.name, own.name)];
            members.map(|member| self.token(&format!("{module}:{}", member.to_upper_camel_case())))
        });
        let numbered = (2..).map(|number| format!("{after_place}{number}"));
        let mut candidates = named.chain([after_place.clone()]).chain(numbered);
        let is_free = |token: &String| self.known.get(token).is_none_or(|(other, _)| other == record);
        candidates.find(is_free).unwrap_or(after_place.clone())
    }
}

/// An object without the fields that have no value.
fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// Lines that belong together, in one.
fn one_paragraph(docs: &str) -> String {
    let paragraphs = docs
        .split("\n\n")
        .map(|lines| lines.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
