//! An error with the lines of the stack file that it is about.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use bindery_resource::nearest;
use bindery_stack::{Diagnostic, Position};

/// A stack file as it was read.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its path, as it was given.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Source {
    /// A file of the operator's, which may hold credentials anywhere: its keys and tables are shown, and no value.
    pub fn without_values(path: String, text: &str) -> Self {
        let line = |line: &str| match line.split_once('=') {
            _ if line.trim_start().starts_with('[') || line.trim().is_empty() => line.to_string(),
            Some((key, _)) if !key.contains(['"', '\'']) => format!("{key}= …"),
            _ => "…".to_string(),
        };
        let text = text.lines().map(line).collect::<Vec<_>>().join("\n");
        Self { path, text }
    }
}

/// A line of a stack file without the credential that is on it.
fn without_credential(line: &str) -> String {
    const SECRET: [&str; 2] = ["accessToken", "credentials"];
    let Some((key, _)) = line.rsplit_once(": ") else {
        return line.to_string();
    };
    let name = key.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '{'));
    let name = name.rsplit(':').next().unwrap_or(name);
    // A misspelt one is one, too.
    match nearest(name, SECRET) {
        Some(_) => format!("{key}: …"),
        None => line.to_string(),
    }
}

/// Renders a problem, with colours.
pub fn render(problem: &Diagnostic, source: Option<&Source>, width: usize) -> String {
    let title = problem.title();
    let mut group = Level::ERROR
        .primary_title(title.as_str())
        .elements([] as [Snippet<'_, annotate_snippets::Annotation<'_>>; 0]);
    if let (Some(source), Some(position)) = (source, problem.position) {
        group = group.element(snippet(source, position));
    }
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
    }
    let groups: [Group<'_>; 1] = [group];
    Renderer::styled().term_width(width).render(&groups)
}

fn snippet(source: &Source, position: Position) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    // Only the line itself: what is rendered is searched from its start each time. What is wrong after the last line is
    // shown at its end.
    let numbered = || source.text.lines().zip(1..);
    let found = numbered().find(|(_, number)| *number == position.line);
    let (line, number, column) = match found.or_else(|| numbered().last()) {
        Some((line, number)) if number == position.line => (line, number, position.column),
        Some((line, number)) => (line, number, line.chars().count() + 1),
        None => ("", 1, 1),
    };
    let line = without_credential(line);
    let at = span(&line, column);
    Snippet::source(line)
        .line_start(number)
        .path(source.path.as_str())
        .annotation(AnnotationKind::Primary.span(at))
}

/// The word at a column: up to its end in YAML.
fn span(line: &str, column: usize) -> Range<usize> {
    let start = line
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(line.len(), |(index, _)| index);
    let word = line.get(start..).unwrap_or_default();
    start..start + length(word)
}

fn length(word: &str) -> usize {
    let quote = word.chars().next().filter(|first| matches!(first, '"' | '\''));
    if let Some(quote) = quote {
        let end = word.get(1..).and_then(|inner| inner.find(quote));
        return end.map_or(word.trim_end().len(), |end| end + 2);
    }
    let ends = [": ", ", ", " #", "]", "}"]
        .into_iter()
        .filter_map(|end| word.find(end));
    let end = ends
        .chain(word.strip_suffix(':').map(str::len))
        .min()
        .unwrap_or(word.len());
    word.get(..end)
        .unwrap_or(word)
        .trim_end()
        .len()
        .max(usize::from(!word.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn underlined(text: &str, line: usize, column: usize) -> &str {
        let line = text.lines().nth(line - 1).unwrap();
        line.get(span(line, column)).unwrap()
    }

    #[test]
    fn the_word_at_a_place_is_underlined() {
        let text = "a: 1\n  key:\n    - ünï: 'x, y' # why\n    - {b: c, d: [e]}\n";
        assert_eq!(underlined(text, 1, 1), "a");
        assert_eq!(underlined(text, 2, 3), "key");
        assert_eq!(underlined(text, 3, 7), "ünï");
        assert_eq!(underlined(text, 3, 12), "'x, y'");
        assert_eq!(underlined(text, 4, 11), "c");
        assert_eq!(underlined(text, 4, 18), "e");
    }

    #[test]
    fn no_credential_is_shown() {
        for line in [
            "  bindery:accessToken: ya29.hidden",
            "  bindery:acessToken: \"ya29.hidden\"",
            "config: {bindery:credentials: 'hidden'}",
        ] {
            assert!(!without_credential(line).contains("hidden"), "{line}");
        }
        assert_eq!(without_credential("  bindery:project: home"), "  bindery:project: home");
        let text =
            "[tenant.credential]\nacessToken = \"hidden\"\ncredentials = \'\'\'\nhidden\nhidden = x\n\"hidden = y\"\n";
        let source = Source::without_values("tenants.toml".to_string(), text);
        assert_eq!(
            source.text,
            "[tenant.credential]\nacessToken = …\ncredentials = …\n…\nhidden = …\n…"
        );
    }

    #[test]
    fn a_place_past_the_end_is_no_reason_to_fail() {
        let problem = Diagnostic {
            position: Some(Position { line: 9, column: 9 }),
            ..Diagnostic::new("wrong")
        };
        let source = Source {
            path: "stack.yaml".to_string(),
            text: "a\n".to_string(),
        };
        assert!(render(&problem, Some(&source), 80).contains("wrong"));
        assert!(render(&problem, None, 80).contains("wrong"));
    }
}
