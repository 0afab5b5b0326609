//! What a person sees of a plan: a line for each resource that something is done to, and under it its properties, old and
//! new values lined up. Long lists are folded.

use std::collections::HashSet;

use anstyle::Style;
use bindery_resource::{Change, Diff, PropertyMap, PropertyPath, Value};
use bindery_stack::{Action, Plan, Step};

use crate::style::{CHANGE, FAINT, MADE, REMOVED};

/// How many entries of a list are shown before it is folded.
const SHOWN_ENTRIES: usize = 8;

/// Above this many resources, their properties are folded.
const SHOWN_RESOURCES: usize = 40;

/// How wide an old value may be for the new ones to be lined up behind it.
const WIDEST_OLD: usize = 60;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What changes, folded.
    Folded,
    /// Everything (`--diff`).
    Whole,
}

/// The lines of a plan. Resources that stay as they are, are counted only.
pub fn plan(plan: &Plan, detail: Detail) -> Vec<String> {
    let changed: Vec<&Step> = plan.steps.iter().filter(|step| step.action != Action::Same).collect();
    let width = changed
        .iter()
        .map(|step| width(step.urn.name()))
        .max()
        .unwrap_or_default();
    let is_folded = detail == Detail::Folded && changed.len() > SHOWN_RESOURCES;
    let mut lines = Vec::new();
    for (old, new) in &plan.renamed {
        lines.push(format!("{CHANGE} > {}{CHANGE:#} was `{}`", new.name(), old.name()));
    }
    for step in changed {
        lines.push(heading(step, width));
        if !is_folded {
            lines.extend(properties(step, detail));
        }
    }
    if is_folded {
        lines.push(format!("{FAINT}   properties are folded; --diff shows them{FAINT:#}"));
    }
    lines.push(count(plan));
    lines
}

/// The sign of an action.
fn sign(action: &Action) -> (&'static str, Style) {
    match action {
        Action::Create => ("+", MADE),
        Action::Import(_) => ("=", MADE),
        Action::Update(_) => ("~", CHANGE),
        Action::Replace(_) => ("+-", CHANGE),
        Action::Delete => ("-", REMOVED),
        Action::Forget => ("x", REMOVED),
        Action::Same => ("", Style::new()),
    }
}

fn heading(step: &Step, name_width: usize) -> String {
    let (sign, style) = sign(&step.action);
    let name = step.urn.name();
    let padding = " ".repeat(name_width.saturating_sub(width(name)));
    let note = match &step.action {
        Action::Import(id) => format!("  adopted: {id}"),
        Action::Forget => "  stays as it is, and is no longer this stack's".to_string(),
        Action::Replace(_) if step.kept.retain_on_delete => "  the old one stays as it is".to_string(),
        Action::Replace(diff) if diff.delete_before_replace => "  deleted first".to_string(),
        _ => String::new(),
    };
    format!(
        "{style}{sign:>2} {name}{style:#}{padding}  {FAINT}{}{FAINT:#}{note}",
        step.urn.token()
    )
}

fn properties(step: &Step, detail: Detail) -> Vec<String> {
    match &step.action {
        Action::Create | Action::Import(_) => listed(&step.inputs, detail),
        Action::Update(diff) | Action::Replace(diff) => {
            let nothing = PropertyMap::new();
            let old = step.old.as_ref().map_or(&nothing, |old| &old.outputs);
            let mut lines = changes(diff, old, &step.inputs, detail);
            if detail == Detail::Whole {
                lines.extend(unchanged(diff, &step.inputs));
            }
            lines
        }
        Action::Delete | Action::Forget if detail == Detail::Whole => listed(&step.inputs, detail),
        Action::Delete | Action::Forget | Action::Same => Vec::new(),
    }
}

/// The lines of properties that are all new, or all go.
fn listed(properties: &PropertyMap, detail: Detail) -> Vec<String> {
    let names = properties.keys().map(|name| width(name)).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in properties {
        match value {
            Value::List(items) if items.len() > 1 => {
                lines.push(format!("     {name}"));
                let entries: Vec<String> = items.iter().map(|item| format!("       {item}")).collect();
                lines.extend(folded(entries, detail));
            }
            value => lines.push(format!("     {}  {value}", padded(name, names))),
        }
    }
    lines
}

/// The lines of what changes. Also what a refresh finds.
pub fn changes(diff: &Diff, old: &PropertyMap, new: &PropertyMap, detail: Detail) -> Vec<String> {
    let rows: Vec<Row> = diff.changes.iter().map(|change| Row::of(change, old, new)).collect();
    let widest = |of: fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or_default();
    let names = widest(|row| width(&row.name));
    let olds = widest(|row| match &row.values {
        Values::Two(old, _) if width(old) <= WIDEST_OLD => width(old),
        _ => 0,
    });
    let mut lines = Vec::new();
    for Row { name, values, note } in rows {
        match values {
            Values::Two(old, new) => {
                lines.push(format!(
                    "     {}  {} → {new}{note}",
                    padded(&name, names),
                    padded(&old, olds)
                ));
            }
            Values::Lists(removed, added, kept) => {
                lines.push(format!("     {name}{note}"));
                let entries = removed.iter().map(|item| format!("     {REMOVED}- {item}{REMOVED:#}"));
                let entries = entries.chain(added.iter().map(|item| format!("     {MADE}+ {item}{MADE:#}")));
                lines.extend(folded(entries.collect(), detail));
                match (detail, kept.len()) {
                    (_, 0) => {}
                    (Detail::Whole, _) => lines.extend(kept.iter().map(|item| format!("       {item}"))),
                    (Detail::Folded, count) => lines.push(format!("       {FAINT}… {count} unchanged{FAINT:#}")),
                }
            }
        }
    }
    lines
}

fn unchanged(diff: &Diff, inputs: &PropertyMap) -> Vec<String> {
    let changed: HashSet<&str> = diff.changes.iter().filter_map(|change| change.path.first()).collect();
    let rest = inputs.iter().filter(|(name, _)| !changed.contains(name.as_str()));
    rest.map(|(name, value)| format!("     {FAINT}{name}  {value}{FAINT:#}"))
        .collect()
}

/// One property that changes.
struct Row {
    name: String,
    values: Values,
    note: &'static str,
}

enum Values {
    Two(String, String),
    /// What goes, what comes, what stays.
    Lists(Vec<String>, Vec<String>, Vec<String>),
}

impl Row {
    fn of(change: &Change, old: &PropertyMap, new: &PropertyMap) -> Self {
        let values = match (change.path.get(old), change.path.get(new)) {
            (Some(Value::List(old)), Some(Value::List(new))) => {
                let shown = |items: &[Value]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
                let (old, new) = (shown(old), shown(new));
                let (olds, news): (HashSet<&String>, HashSet<&String>) = (old.iter().collect(), new.iter().collect());
                let without = |items: &[String], others: &HashSet<&String>| {
                    items.iter().filter(|item| !others.contains(item)).cloned().collect()
                };
                let kept = old.iter().filter(|item| news.contains(item)).cloned().collect();
                Values::Lists(without(&old, &news), without(&new, &olds), kept)
            }
            _ => Values::Two(value(&change.path, old), value(&change.path, new)),
        };
        Self {
            name: change.path.to_string(),
            values,
            note: if change.replaces { "  (replaces)" } else { "" },
        }
    }
}

fn value(path: &PropertyPath, properties: &PropertyMap) -> String {
    match path.get(properties) {
        Some(Value::Null) | None => "(none)".to_string(),
        Some(value) => value.to_string(),
    }
}

fn folded(mut entries: Vec<String>, detail: Detail) -> Vec<String> {
    let more = entries.len().saturating_sub(SHOWN_ENTRIES);
    // A fold that hides one line saves none.
    if detail == Detail::Folded && more > 1 {
        entries.truncate(SHOWN_ENTRIES);
        entries.push(format!("       {FAINT}… {more} more; --diff shows them{FAINT:#}"));
    }
    entries
}

/// How many characters wide a text is shown.
fn width(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

/// `2 to create, 1 unchanged`.
fn count(plan: &Plan) -> String {
    let count = |is: fn(&Action) -> bool| plan.steps.iter().filter(|step| is(&step.action)).count();
    let parts = [
        (count(|action| matches!(action, Action::Create)), "to create"),
        (count(|action| matches!(action, Action::Import(_))), "to adopt"),
        (count(|action| matches!(action, Action::Update(_))), "to update"),
        (count(|action| matches!(action, Action::Replace(_))), "to replace"),
        (count(|action| matches!(action, Action::Delete)), "to delete"),
        (count(|action| matches!(action, Action::Forget)), "to let go"),
        (count(|action| matches!(action, Action::Same)), "unchanged"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if parts.is_empty() {
        "nothing is declared, and nothing exists".to_string()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_resource::{ChangeKind, Urn};
    use bindery_stack::step::KeptOptions;

    fn plain(lines: &[String]) -> Vec<String> {
        lines
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    fn properties(json: serde_json::Value) -> PropertyMap {
        match Value::from(json) {
            Value::Object(properties) => properties,
            other => panic!("{other}"),
        }
    }

    fn diff(paths: &[(&str, bool)]) -> Diff {
        let change = |(path, replaces): &(&str, bool)| Change {
            path: PropertyPath::parse(path).unwrap(),
            kind: ChangeKind::Update,
            replaces: *replaces,
        };
        Diff {
            changes: paths.iter().map(change).collect(),
            delete_before_replace: false,
        }
    }

    #[test]
    fn old_and_new_values_are_lined_up_and_lists_show_what_differs() {
        let old = properties(serde_json::json!({"role": "a", "member": "longer", "members": ["a", "b", "c"]}));
        let new = properties(serde_json::json!({"role": "b", "member": "x", "members": ["b", "c", "d"]}));
        let diff = diff(&[("role", true), ("member", false), ("members", false)]);
        assert_eq!(
            plain(&changes(&diff, &old, &new, Detail::Folded)),
            [
                r#"     role     "a"      → "b"  (replaces)"#,
                r#"     member   "longer" → "x""#,
                "     members",
                r#"     - "a""#,
                r#"     + "d""#,
                "       … 2 unchanged",
            ]
        );
    }

    fn created(members: usize) -> Plan {
        let members: Vec<String> = (0..members).map(|n| format!("user:{n}@example.com")).collect();
        let step = Step {
            urn: Urn::new("dev", "p", "t", "n"),
            action: Action::Create,
            inputs: properties(serde_json::json!({ "name": "x", "members": members })),
            id: None,
            old: None,
            dependencies: Vec::new(),
            position: None,
            kept: KeptOptions::default(),
        };
        Plan {
            steps: vec![step],
            ..Plan::default()
        }
    }

    #[test]
    fn long_lists_are_folded_unless_all_is_asked_for() {
        let shown = plain(&plan(&created(100), Detail::Folded));
        assert!(
            shown.contains(&"       … 92 more; --diff shows them".to_string()),
            "{shown:?}"
        );
        assert_eq!(plan(&created(100), Detail::Whole).len(), 104);
        assert!(
            !plain(&plan(&created(9), Detail::Folded))
                .iter()
                .any(|line| line.contains("more"))
        );
    }
}
