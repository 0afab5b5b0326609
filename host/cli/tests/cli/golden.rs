//! The whole output of the binary, as it is recorded. `BLESS=1` records it anew: look at the difference before it is kept.
//!
//! - `golden/bad/*.yaml`: stack files that are refused; what is said stands in the `.txt` beside each.
//! - `golden/runs/*.md`, `docs/*.md` and the README: commands in blocks marked `console`, each with what it prints. Blocks
//!   marked `yaml NAME` or `toml NAME` are the files that they work on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;
use similar::TextDiff;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// What differs from run to run, and from machine to machine.
fn normal(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"\d+\.\d s\b", "0.0 s"),
            (r#""seconds": [0-9.e-]+"#, r#""seconds": 0"#),
            (r"[0-9a-f]{64}", "DIGEST"),
            (r"(size\W+)\d+", "${1}0"),
            (
                r"process \d+ of \S+ on \S+, since [0-9: -]+ UTC",
                "process 1 of me on here, since now",
            ),
            (r#""time": "[^"]+""#, r#""time": """#),
            (r"127\.0\.0\.1:\d+", "127.0.0.1:0"),
            (r"\d{4}-\d\d-\d\dT[0-9-]+\.\d+Z", "TIME"),
        ]
        .into_iter()
        .map(|(rule, with)| (Regex::new(rule).unwrap(), with))
        .collect()
    });
    RULES.iter().fold(text.to_string(), |text, (rule, with)| {
        rule.replace_all(&text, *with).into_owned()
    })
}

/// Compares what was printed with what is recorded, or records it.
fn compare(path: &Path, recorded: &str, printed: &str, wrong: &mut Vec<String>) {
    if normal(recorded) == normal(printed) {
        return;
    }
    if is_blessed() {
        std::fs::write(path, printed).unwrap();
        return;
    }
    let (recorded, printed) = (normal(recorded), normal(printed));
    let diff = TextDiff::from_lines(&recorded, &printed);
    wrong.push(format!("{}\n{}", path.display(), diff.unified_diff()));
}

fn all_as_recorded(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "what is printed is not what is recorded; `just bless` records it anew:\n{}",
        wrong.join("\n")
    );
}

/// The program as a user's shell finds it, with nothing of this machine in its environment.
fn shell(folder: &Path, line: &str) -> (String, Option<i32>) {
    let programs = Path::new(env!("CARGO_BIN_EXE_bindery")).parent().unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", folder)
        .env("BINDERY_CACHE_DIR", crate::harness::CACHE)
        // One after the other, so that the order is the same each time.
        .env("BINDERY_PARALLEL", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

#[test]
fn what_is_said_of_each_bad_stack_file_is_as_recorded() {
    let folder = golden().join("bad");
    let mut wrong = Vec::new();
    let files = files(&folder, "yaml");
    assert!(files.len() >= 60, "{} bad inputs", files.len());
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let mut printed = String::new();
        for flags in ["", " --json"] {
            let line = format!("bindery preview {name}{flags}");
            let (output, code) = shell(&folder, &format!("GOOGLE_CLOUD_PROJECT=home {line}"));
            assert_eq!(code, Some(2), "{name}: {output}");
            assert!(!output.contains("panicked"), "{name}: {output}");
            writeln!(printed, "$ {line}\n{output}").unwrap();
        }
        let path = file.with_extension("txt");
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        compare(&path, &recorded, &printed, &mut wrong);
    }
    all_as_recorded(&wrong);
}

#[test]
fn the_transcripts_are_as_recorded() {
    let mut wrong = Vec::new();
    for path in files(&golden().join("runs"), "md") {
        transcript(&path, &mut wrong);
    }
    all_as_recorded(&wrong);
}

#[test]
fn the_commands_of_the_docs_do_what_is_printed_there() {
    let mut wrong = Vec::new();
    let mut commands = 0;
    for path in files(&root().join("docs"), "md")
        .into_iter()
        .chain([root().join("README.md")])
    {
        commands += transcript(&path, &mut wrong);
    }
    assert!(commands > 20, "{commands} commands");
    all_as_recorded(&wrong);
}

/// Runs the commands of a document in a folder of its own. Gives how many there were.
fn transcript(path: &Path, wrong: &mut Vec<String>) -> usize {
    let recorded = std::fs::read_to_string(path).unwrap();
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    for example in files(&root().join("examples"), "yaml") {
        let name = example.file_name().unwrap();
        std::fs::copy(&example, folder.path().join("examples").join(name)).unwrap();
    }
    std::fs::write(folder.path().join("acme.wasm"), bindery_test_guests::ACME).unwrap();
    let mut printed = String::new();
    let mut commands = 0;
    let mut lines = recorded.lines().peekable();
    while let Some(line) = lines.next() {
        writeln!(printed, "{line}").unwrap();
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            continue;
        };
        let mut block = Vec::new();
        for line in lines.by_ref() {
            if line == "```" {
                break;
            }
            block.push(line);
        }
        match info.split_once(' ') {
            Some((_, name)) => std::fs::write(folder.path().join(name), block.join("\n") + "\n").unwrap(),
            None if info == "console" => {
                let commands_of_block = commands_in(&block);
                commands += commands_of_block.len();
                block.clear();
                for command in commands_of_block {
                    let (output, code) = shell(folder.path(), &command.replace("\\\n", " "));
                    assert!(!output.contains("panicked"), "{command}: {output}");
                    let shown: Vec<String> = command.lines().map(str::to_string).collect();
                    writeln!(printed, "$ {}", shown.join("\n")).unwrap();
                    printed += &output;
                    if !output.is_empty() && !output.ends_with('\n') {
                        printed.push('\n');
                    }
                    if code != Some(0) {
                        writeln!(
                            printed,
                            "[exit {}]",
                            code.map_or("by signal".to_string(), |code| code.to_string())
                        )
                        .unwrap();
                    }
                }
            }
            None => {}
        }
        for line in block {
            writeln!(printed, "{line}").unwrap();
        }
        writeln!(printed, "```").unwrap();
    }
    compare(path, &recorded, &printed, wrong);
    commands
}

/// The commands of a block: lines that start with `$ `, and those that a `\` at the end of a line adds.
fn commands_in(block: &[&str]) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("$ ") else { continue };
        let mut command = first.to_string();
        while command.ends_with('\\') {
            let Some(next) = lines.next() else { break };
            command.push('\n');
            command.push_str(next);
        }
        commands.push(command);
    }
    commands
}
