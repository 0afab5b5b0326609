//! What would change, in the engine's form.

use std::collections::HashMap;

use bindery_resource::path::Segment;
use bindery_resource::{Change, ChangeKind, Diff, PropertyPath};
use pulumi_gestalt_proto::pulumi::pulumirpc::diff_response::DiffChanges;
use pulumi_gestalt_proto::pulumi::pulumirpc::property_diff::Kind;
use pulumi_gestalt_proto::pulumi::pulumirpc::{DiffResponse, PropertyDiff};

/// A diff without what the program ignores.
pub fn response(diff: Diff, ignored: &[String]) -> DiffResponse {
    let is_ignored = |path: &PropertyPath| ignored.iter().any(|pattern| covers(pattern, path));
    let changes: Vec<Change> = diff
        .changes
        .into_iter()
        .filter(|change| !is_ignored(&change.path))
        .collect();
    let mut response = DiffResponse {
        changes: if changes.is_empty() {
            DiffChanges::DiffNone
        } else {
            DiffChanges::DiffSome
        }
        .into(),
        delete_before_replace: diff.delete_before_replace && !changes.is_empty(),
        has_detailed_diff: true,
        ..DiffResponse::default()
    };
    let mut detailed = HashMap::new();
    for change in changes {
        let property = change.path.first().unwrap_or_default().to_string();
        if change.replaces && !response.replaces.contains(&property) {
            response.replaces.push(property.clone());
        }
        if !response.diffs.contains(&property) {
            response.diffs.push(property);
        }
        let kind = match (change.kind, change.replaces) {
            (ChangeKind::Add, false) => Kind::Add,
            (ChangeKind::Add, true) => Kind::AddReplace,
            (ChangeKind::Remove, false) => Kind::Delete,
            (ChangeKind::Remove, true) => Kind::DeleteReplace,
            (ChangeKind::Update, false) => Kind::Update,
            (ChangeKind::Update, true) => Kind::UpdateReplace,
        };
        // What exists is compared with what is declared, so the old value is an output.
        let difference = PropertyDiff {
            kind: kind.into(),
            input_diff: false,
        };
        detailed.insert(change.path.to_string(), difference);
    }
    response.detailed_diff = detailed;
    response
}

/// Whether a pattern of the program's leads to a place or to something that it is in. A `*` is any name or index.
fn covers(pattern: &str, path: &PropertyPath) -> bool {
    let Some(pattern) = steps(pattern) else { return false };
    let segments = path.segments();
    !pattern.is_empty()
        && pattern.len() <= segments.len()
        && pattern
            .iter()
            .zip(segments)
            .all(|(step, segment)| match (step, segment) {
                (None, _) => true,
                (Some(step), Segment::Key(name)) => step == name,
                (Some(step), Segment::Index(index)) => *step == index.to_string(),
            })
}

/// The steps of a pattern: names, indices as they are written, and none for a `*`. None at all for what is no pattern.
fn steps(pattern: &str) -> Option<Vec<Option<String>>> {
    let mut steps = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let step = if let Some(inner) = rest.strip_prefix('[') {
            let mut quoted = serde_json::Deserializer::from_str(inner).into_iter::<String>();
            if inner.starts_with('"') {
                let name = quoted.next()?.ok()?;
                rest = inner.get(quoted.byte_offset()..)?.strip_prefix(']')?;
                Some(name)
            } else {
                let (index, after) = inner.split_once(']')?;
                rest = after;
                (index != "*").then(|| index.to_string())
            }
        } else {
            let named = rest.strip_prefix('.').unwrap_or(rest);
            let end = named.find(['.', '[']).unwrap_or(named.len());
            let (name, after) = named.split_at_checked(end)?;
            if name.is_empty() {
                return None;
            }
            rest = after;
            (name != "*").then(|| name.to_string())
        };
        steps.push(step);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PropertyPath {
        PropertyPath::parse(text).unwrap()
    }

    #[test]
    fn patterns_cover_what_is_inside_of_them() {
        for (pattern, inside) in [
            ("members", "members[2]"),
            ("members[*]", "members[2]"),
            ("members[2]", "members[2]"),
            ("*", "condition.title"),
            ("condition.*", "condition.title"),
            (r#"labels["a.b"]"#, r#"labels["a.b"]"#),
            (r#"["a[*].b"].*"#, r#"["a[*].b"].c"#),
            ("labels.a/b", r#"labels["a/b"]"#),
            ("parts[*].size", "parts[0].size"),
        ] {
            assert!(covers(pattern, &path(inside)), "{pattern} {inside}");
        }
        for (pattern, other) in [
            ("members[1]", "members[2]"),
            ("condition.title", "condition"),
            ("member", "members"),
            ("", "members"),
            ("[", "members"),
        ] {
            assert!(!covers(pattern, &path(other)), "{pattern} {other}");
        }
    }

    #[test]
    fn each_property_is_named_once_and_every_path_has_its_property() {
        let change = |path: &str, kind, replaces| Change {
            path: PropertyPath::parse(path).unwrap(),
            kind,
            replaces,
        };
        let diff = Diff {
            changes: vec![
                change("members[0]", ChangeKind::Add, false),
                change("members[1]", ChangeKind::Remove, false),
                change("role", ChangeKind::Update, true),
                change("project", ChangeKind::Update, true),
            ],
            delete_before_replace: true,
        };
        let response = response(diff, &["project".to_string()]);
        assert_eq!(response.diffs, ["members", "role"]);
        assert_eq!(response.replaces, ["role"]);
        assert_eq!(response.detailed_diff.len(), 3);
        assert_eq!(response.detailed_diff["members[1]"].kind(), Kind::Delete);
        assert_eq!(response.detailed_diff["role"].kind(), Kind::UpdateReplace);
        assert!(response.delete_before_replace);
        assert_eq!(response.changes(), DiffChanges::DiffSome);
    }

    #[test]
    fn nothing_is_left_when_all_is_ignored() {
        let diff = Diff {
            changes: vec![Change {
                path: path("role"),
                kind: ChangeKind::Update,
                replaces: true,
            }],
            delete_before_replace: true,
        };
        let response = response(diff, &["role".to_string()]);
        assert_eq!(response.changes(), DiffChanges::DiffNone);
        assert!(!response.delete_before_replace && response.replaces.is_empty());
    }
}
