//! Keeps secrets out of messages: of failures, errors, warnings and what is logged.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use bindery_resource::{CheckFailure, PropertyPath, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::properties::Properties;

/// What stands for a secret.
const MASKED: &str = "[secret]";

/// How many bytes a secret has at least that is found within a word. A shorter one counts as a word of its own only.
const WORD: usize = 4;

/// How many bytes of a long secret are found where a message breaks it off.
const BEGINNING: usize = 128;

/// The secrets of a request and of the configuration.
#[derive(Debug, Default, Clone)]
pub struct Mask {
    /// In lower case, because rules write some so; the longest first.
    texts: Vec<String>,
    paths: BTreeSet<PropertyPath>,
}

impl Mask {
    /// What hides the secrets of these properties.
    pub fn of(all: &[&Properties]) -> Self {
        let mut secrets = Vec::new();
        let mut paths = BTreeSet::new();
        for properties in all {
            for path in &properties.secrets {
                let value = path.get(&properties.values);
                value.into_iter().for_each(|value| leaves(value, &mut secrets));
                paths.insert(path.clone());
            }
        }
        Self {
            texts: longest_first(secrets.iter().flat_map(|text| forms(text)).collect()),
            paths,
        }
    }

    /// Hides a text, too.
    pub fn add(&mut self, text: &str) {
        self.texts.extend(forms(text));
        self.texts = longest_first(std::mem::take(&mut self.texts));
    }

    /// What hides both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.texts.extend(other.texts.iter().cloned());
        self.paths.extend(other.paths.iter().cloned());
        Self {
            texts: longest_first(self.texts),
            paths: self.paths,
        }
    }

    /// A message without secrets.
    pub fn hide(&self, message: &str) -> String {
        let lower = message.to_ascii_lowercase();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for secret in self.texts.iter().filter(|secret| secret.len() <= lower.len()) {
            let all = lower.match_indices(secret.as_str());
            let all = all.map(|(start, text)| (start, start + text.len()));
            found.extend(all.filter(|(start, end)| end - start >= WORD || is_word(message, *start, *end)));
        }
        found.sort_unstable();
        let (mut masked, mut rest) = (String::new(), 0);
        for (start, end) in found {
            // What overlaps is masked once.
            if start >= rest {
                masked += message.get(rest..start).unwrap_or_default();
                masked += MASKED;
            }
            rest = rest.max(end);
        }
        masked + message.get(rest..).unwrap_or_default()
    }

    /// Whether something in a property is secret.
    pub fn is_in(&self, property: &str) -> bool {
        self.paths.iter().any(|path| path.first() == Some(property))
    }

    /// A failure without secrets, and without the way into one.
    pub fn hide_in(&self, failure: &CheckFailure) -> CheckFailure {
        let is_inside = |secret: &&PropertyPath| failure.path.segments().starts_with(secret.segments());
        CheckFailure {
            path: self.paths.iter().find(is_inside).unwrap_or(&failure.path).clone(),
            reason: self.hide(&failure.reason),
        }
    }
}

/// The secrets of every call of a run. Operations that are committed together fail with one message, which may name what is
/// secret in another one.
#[derive(Debug, Default)]
pub struct Secrets(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    texts: BTreeSet<String>,
    /// What hides them; none since the last came.
    all: Option<Arc<Mask>>,
}

impl Secrets {
    /// Hides from now on what this one hides.
    pub fn add(&self, mask: &Mask) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for text in &mask.texts {
            if !seen.texts.contains(text) {
                seen.texts.insert(text.clone());
                seen.all = None;
            }
        }
    }

    /// What hides all of them.
    pub fn all(&self) -> Arc<Mask> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Seen { texts, all } = &mut *seen;
        let all = all.get_or_insert_with(|| {
            Arc::new(Mask {
                texts: longest_first(texts.iter().cloned().collect()),
                paths: BTreeSet::new(),
            })
        });
        Arc::clone(all)
    }
}

/// How a message may write a secret: in JSON, in a URL, without control characters, and an identity or a resource without what
/// says its kind.
fn forms(text: &str) -> impl Iterator<Item = String> {
    let json = serde_json::Value::String(text.to_string()).to_string();
    let quoted = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
    let identity = text.split_once(':').map(|(_, identity)| identity);
    let last = text.rsplit_once('/').map(|(_, last)| last);
    let encoded = utf8_percent_encode(text, PLAIN).to_string();
    let beginning = text.get(..text.ceil_char_boundary(BEGINNING));
    let shown: String = text.chars().filter(|c| !c.is_control()).collect();
    let all = [
        Some(text),
        quoted,
        identity,
        last,
        Some(encoded.as_str()),
        beginning,
        Some(shown.trim()),
    ];
    let forms: Vec<String> = all.into_iter().flatten().map(str::to_ascii_lowercase).collect();
    forms.into_iter().filter(|form| !form.is_empty())
}

fn longest_first(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    texts.dedup();
    texts
}

/// Whether a part of a message is a word of its own.
fn is_word(message: &str, start: usize, end: usize) -> bool {
    let before = message.get(..start).and_then(|text| text.chars().next_back());
    let after = message.get(end..).and_then(|text| text.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

/// The texts in a value.
fn leaves(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(_) => texts.push(value.to_string()),
        Value::List(items) => items.iter().for_each(|item| leaves(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, texts)),
        Value::Null | Value::Bool(_) | Value::Unknown => {}
    }
}

/// What a URL leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

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
        assert_eq!(Mask::of(&[&secret("a\"b\"")]).hide(r#"<a\"b\">"#), "<[secret]>");
        assert_eq!(
            Mask::of(&[&secret("projects/p/x/hidden")]).hide("<hidden>"),
            "<[secret]>"
        );
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
        let mask = Mask::of(&[&secret("user:bad")]);
        assert_eq!(
            mask.hide("`bad` is no user, and not too bad"),
            "`[secret]` is no user, and not too [secret]"
        );
        assert_eq!(
            Mask::of(&[&secret("e")]).hide("is not e, expected"),
            "is not [secret], expected"
        );
    }

    #[test]
    fn a_long_secret_is_hidden_at_once_and_where_it_is_broken_off() {
        let long: String = (0..200_000_u32).map(|n| n.to_string()).collect();
        let mask = Mask::of(&[&secret(&long)]);
        assert_eq!(mask.hide(&format!("<{long}>")), "<[secret]>");
        assert_eq!(mask.hide(&format!("<{}…>", &long[..BEGINNING])), "<[secret]…>");
    }

    #[test]
    fn the_way_into_a_secret_is_part_of_it() {
        let mask = Mask::of(&[&secret("x")]);
        let path = |text| PropertyPath::parse(text).unwrap();
        let failure = CheckFailure::new(path("member.hiddenkey"), "is wrong");
        assert_eq!(mask.hide_in(&failure).path, path("member"));
        let failure = CheckFailure::new(path("members[1]"), "is wrong");
        assert_eq!(mask.hide_in(&failure).path, path("members[1]"));
    }
}
