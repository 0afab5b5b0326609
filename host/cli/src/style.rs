//! Colours by meaning.

use anstyle::{AnsiColor, Style};

/// Warnings.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What changes.
pub const CHANGE: Style = AnsiColor::Yellow.on_default();
/// What is made.
pub const MADE: Style = AnsiColor::Green.on_default();
/// What is removed.
pub const REMOVED: Style = AnsiColor::Red.on_default();
/// Hints.
pub const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// Headings.
pub const HEADING: Style = Style::new().bold();
/// What matters less.
pub const FAINT: Style = Style::new().dimmed();
