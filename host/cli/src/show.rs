//! What a person sees of a plan.

use anstyle::{AnsiColor, Style};
use bindery_resource::{Change, Diff, PropertyMap, PropertyPath, Value};
use bindery_stack::{Action, Plan, Step};

/// Errors.
pub const BOLD_RED: Style = AnsiColor::Red.on_default().bold();
/// Warnings, and what changes.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// What is made.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// What is removed.
pub const RED: Style = AnsiColor::Red.on_default();
/// Hints.
pub const CYAN: Style = AnsiColor::Cyan.on_default();
/// Headings.
pub const BOLD: Style = Style::new().bold();

/// Prints a plan. Resources that stay as they are, are counted only.
pub fn plan(plan: &Plan) {
    for step in plan.steps.iter().filter(|step| step.action != Action::Same) {
        self::step(step);
    }
    println!("{}", count(plan));
}

fn step(step: &Step) {
    let (symbol, style) = match step.action {
        Action::Create => ("+", GREEN),
        Action::Update(_) => ("~", YELLOW),
        Action::Replace(_) => ("+-", YELLOW),
        Action::Delete => ("-", RED),
        Action::Same => (" ", Style::new()),
    };
    anstream::println!("{style}{symbol:>2} {}{style:#}  {}", step.urn.name(), step.urn.token());
    match &step.action {
        Action::Create => properties(&step.inputs),
        Action::Update(diff) => changes(diff, step, ""),
        Action::Replace(diff) => changes(diff, step, " (replaces)"),
        Action::Same | Action::Delete => {}
    }
}

fn properties(properties: &PropertyMap) {
    for (name, value) in properties {
        println!("     {name}: {value}");
    }
}

fn changes(diff: &Diff, step: &Step, replaces: &str) {
    for Change {
        path,
        replaces: is_replacing,
        ..
    } in &diff.changes
    {
        let old = step.old.as_ref().map(|old| &old.outputs);
        let note = if *is_replacing { replaces } else { "" };
        println!(
            "     {path}: {} → {}{note}",
            shown(path, old),
            shown(path, Some(&step.inputs))
        );
    }
}

fn shown(path: &PropertyPath, properties: Option<&PropertyMap>) -> String {
    match properties.and_then(|properties| path.get(properties)) {
        Some(Value::Null) | None => "(none)".to_string(),
        Some(value) => value.to_string(),
    }
}

/// `2 to create, 1 unchanged`.
fn count(plan: &Plan) -> String {
    let count = |is: fn(&Action) -> bool| plan.steps.iter().filter(|step| is(&step.action)).count();
    let parts = [
        (count(|action| matches!(action, Action::Create)), "to create"),
        (count(|action| matches!(action, Action::Update(_))), "to update"),
        (count(|action| matches!(action, Action::Replace(_))), "to replace"),
        (count(|action| matches!(action, Action::Delete)), "to delete"),
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
