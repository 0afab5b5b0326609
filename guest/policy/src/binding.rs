//! One binding of a policy as it was read, with what it is looked for by: a digest takes longer than a look, and a commit
//! looks at each binding many times.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value, json};

use crate::condition::{Condition, ConditionDigest};
use crate::role::Role;

/// Which binding of a policy: one per role and condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingKey {
    /// The role.
    pub role: Role,
    /// The digest of its condition, where it has one.
    pub condition: Option<ConditionDigest>,
}

impl BindingKey {
    pub(crate) fn is(&self, binding: &Binding) -> bool {
        binding.role() == self.role.as_str() && self.condition == binding.digest
    }
}

/// A well-formed binding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Binding {
    value: Value,
    digest: Option<ConditionDigest>,
}

impl Binding {
    /// Takes a binding as it was read. The error is the rest of the path of what is wrong, and what was expected.
    pub(crate) fn parse(value: Value) -> Result<Self, &'static str> {
        check(&value)?;
        let mut binding = Self { value, digest: None };
        binding.digest = binding.condition().map(|condition| condition.digest());
        Ok(binding)
    }

    pub(crate) fn new(key: &BindingKey, condition: Option<&Condition>, members: &[&str]) -> Self {
        let mut binding = Map::new();
        binding.insert("role".to_string(), json!(key.role.as_str()));
        binding.insert("members".to_string(), json!(members));
        if let Some(condition) = condition {
            let mut fields = Map::new();
            fields.insert("title".to_string(), json!(condition.title));
            if let Some(description) = condition.description.as_deref().filter(|text| !text.is_empty()) {
                fields.insert("description".to_string(), json!(description));
            }
            fields.insert("expression".to_string(), json!(condition.expression));
            binding.insert("condition".to_string(), Value::Object(fields));
        }
        Self {
            value: Value::Object(binding),
            digest: condition.map(Condition::digest),
        }
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn role(&self) -> &str {
        self.value.get("role").and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn digest(&self) -> Option<&ConditionDigest> {
        self.digest.as_ref()
    }

    pub(crate) fn condition(&self) -> Option<Condition> {
        let condition = self.value.get("condition")?.as_object()?;
        let text = |key| condition.get(key).and_then(Value::as_str).map(String::from);
        Some(Condition {
            expression: text("expression").unwrap_or_default(),
            title: text("title").unwrap_or_default(),
            description: text("description"),
        })
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        let members = self.value.get("members").and_then(Value::as_array);
        members.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The list of members; none where it has no such list.
    pub(crate) fn members_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.value.get_mut("members")?.as_array_mut()
    }

    pub(crate) fn set_members(&mut self, members: &[String]) {
        if let Some(binding) = self.value.as_object_mut() {
            binding.insert("members".to_string(), json!(members));
        }
    }
}

/// What is wrong with the form of a binding: the rest of its path, and what was expected.
fn check(binding: &Value) -> Result<(), &'static str> {
    let binding = binding.as_object().ok_or("` is not an object")?;
    if !binding.get("role").is_some_and(Value::is_string) {
        return Err(".role` is not a string");
    }
    match binding.get("members") {
        None | Some(Value::Null) => {}
        Some(Value::Array(members)) if members.iter().all(Value::is_string) => {}
        Some(_) => return Err(".members` is not a list of strings"),
    }
    match binding.get("condition") {
        None | Some(Value::Null) => {}
        Some(Value::Object(condition)) => {
            let is_text = |key| condition.get(key).is_none_or(|value: &Value| value.is_string());
            if !(is_text("title") && is_text("description") && is_text("expression")) {
                return Err(".condition` has a field that is not a string");
            }
        }
        Some(_) => return Err(".condition` is not an object"),
    }
    Ok(())
}
