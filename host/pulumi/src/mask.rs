//! Keeps secrets out of messages: of failures, errors, warnings and what is logged.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use bindery_resource::{PropertyPath, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::properties::Properties;

/// What stands for a secret.
const MASKED: &str = "[secret]";

/// How many characters a part of a secret has at least that is masked by itself. Shorter ones are found in other words.
const PART: usize = 4;

/// The secrets of a request and of the configuration. Rules write some in lower case, so case makes no difference.
#[derive(Debug, Default, Clone)]
pub struct Mask(Vec<AhoCorasick>);

impl Mask {
    /// What hides the secrets of these properties.
    pub fn of(all: &[&Properties]) -> Self {
        let mut texts = BTreeSet::new();
        for properties in all {
            for path in &properties.secrets {
                path.get(&properties.values)
                    .into_iter()
                    .for_each(|value| leaves(value, &mut texts));
            }
        }
        Self::of_texts(&texts)
    }

    /// What hides these texts.
    fn of_texts(texts: &BTreeSet<String>) -> Self {
        let mut patterns = BTreeSet::new();
        for text in texts.iter().filter(|text| !text.is_empty()) {
            // A message may hold a secret as it is written in JSON or in a URL, or a part of it: an identity without its kind.
            let json = serde_json::Value::String(text.clone()).to_string();
            patterns.insert(json.trim_matches('"').to_string());
            patterns.insert(url_encoded(text));
            let parts = text.split([':', '/']).filter(|part| part.chars().count() >= PART);
            patterns.extend(parts.map(String::from));
            patterns.insert(text.clone());
        }
        patterns.remove("");
        if patterns.is_empty() {
            return Self::default();
        }
        let built = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns);
        Self(built.into_iter().collect())
    }

    /// What hides both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// A message without secrets.
    pub fn hide(&self, message: &str) -> String {
        self.0.iter().fold(message.to_string(), |message, secrets| {
            let masked = vec![MASKED; secrets.patterns_len()];
            secrets.replace_all(&message, &masked)
        })
    }
}

/// The texts in a value.
fn leaves(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            texts.insert(text.clone());
        }
        Value::Number(_) => {
            texts.insert(value.to_string());
        }
        Value::List(items) => items.iter().for_each(|item| leaves(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, texts)),
        Value::Null | Value::Bool(_) | Value::Unknown => {}
    }
}

/// What a URL leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn url_encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Which outputs are secret: those of inputs that are, and of outputs that were.
pub fn union(all: &[&Properties]) -> BTreeSet<PropertyPath> {
    all.iter()
        .flat_map(|properties| properties.secrets.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use bindery_resource::PropertyMap;

    use super::*;

    fn secret(text: &str) -> Properties {
        Properties {
            values: PropertyMap::from_iter([("member".to_string(), text.into())]),
            secrets: [PropertyPath::property("member")].into(),
        }
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_written() {
        let mask = Mask::of(&[&secret("user:Alice@x.com")]);
        for text in [
            "user:Alice@x.com",
            "user:alice@X.com",
            "ALICE@x.com",
            "user%3AAlice%40x.com",
        ] {
            assert_eq!(mask.hide(&format!("<{text}>")), "<[secret]>");
        }
        assert_eq!(Mask::of(&[&secret("a\"b")]).hide(r#"<a\"b>"#), "<[secret]>");
        assert_eq!(mask.hide("nothing"), "nothing");
    }

    #[test]
    fn what_is_not_secret_is_left_as_it_is() {
        let properties = Properties {
            secrets: BTreeSet::new(),
            ..secret("user:a@x.com")
        };
        assert_eq!(Mask::of(&[&properties]).hide("user:a@x.com"), "user:a@x.com");
        assert_eq!(Mask::of(&[&secret("")]).hide("text"), "text");
    }
}
