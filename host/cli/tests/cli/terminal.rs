//! What a person sees on a terminal, and what an interrupt does.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use bindery_emulator::{Faults, Settings};

use crate::harness::{BUCKET, Bench, CACHE, Ran, member};

/// The start of what makes text coloured.
const ESCAPE: &str = "\u{1b}[";

fn slow(milliseconds: u64) -> Settings {
    Settings {
        faults: Faults {
            latency_ms: milliseconds,
            ..Faults::default()
        },
        ..Settings::default()
    }
}

/// Runs a command on a terminal of its own, which `script` makes; `typed` is what a person types when asked.
fn on_terminal(bench: &Bench, more: &str, typed: &str, environment: &[(&str, &str)]) -> String {
    let origin = bench.emulator.origin();
    let line = format!(
        "{} up {} --endpoint=compute={origin} --config=project=home {more}",
        env!("CARGO_BIN_EXE_bindery"),
        bench.file().display()
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("BINDERY_CACHE_DIR", CACHE);
    script.envs(environment.iter().copied());
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` of util-linux is needed");
    let mut keyboard = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let (mut shown, mut next) = (Vec::new(), [0; 4096]);
    let mut to_type = Some(typed).filter(|typed| !typed.is_empty());
    loop {
        let read = screen.read(&mut next).unwrap();
        shown.extend_from_slice(&next[..read]);
        if read == 0 {
            break;
        }
        if String::from_utf8_lossy(&shown).contains("[y/N]")
            && let Some(typed) = to_type.take()
        {
            keyboard.write_all(typed.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).into_owned()
}

fn three() -> String {
    ["a", "b", "c"]
        .map(|name| member(name, &format!("roles/{name}"), "user:ann@example.com"))
        .concat()
}

#[test]
fn a_terminal_shows_what_is_under_way_and_takes_it_away_at_the_end() {
    let bench = Bench::new();
    bench.write(&three());
    bench.emulator.set(slow(300));
    let screen = on_terminal(&bench, "--yes", "", &[]);
    assert!(
        screen.contains("creating") && screen.contains("[0/3] 3 running, 0 waiting"),
        "{screen}"
    );
    assert!(screen.contains(ESCAPE) && screen.contains("3 created"), "{screen}");
    // The line of progress is cleared before the summary, and not drawn after it.
    let end = screen.rfind("3 created").unwrap();
    assert!(!screen[end..].contains("running"), "{screen}");
}

#[test]
fn what_is_repeated_says_why_on_a_terminal() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.emulator.set(Settings {
        faults: Faults {
            unavailable_before: 0.9,
            seed: 7,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let screen = on_terminal(&bench, "--yes --timeout 20", "", &[]);
    assert!(screen.contains("attempt 1 failed, next in"), "{screen}");
}

#[test]
fn a_terminal_is_asked_and_anything_but_yes_is_no() {
    let bench = Bench::new();
    bench.write(&three());
    let screen = on_terminal(&bench, "", "n\n", &[]);
    assert!(
        screen.contains("Do this? [y/N]") && !screen.contains("created"),
        "{screen}"
    );
    assert_eq!(bench.emulator.take_requests(), []);
    let screen = on_terminal(&bench, "", "y\n", &[]);
    assert!(screen.contains("3 created"), "{screen}");
}

#[test]
fn an_interrupt_at_the_question_does_nothing() {
    const CTRL_C: &str = "\u{3}";
    let bench = Bench::new();
    bench.write(&three());
    let screen = on_terminal(&bench, "", CTRL_C, &[]);
    assert!(
        screen.contains("Do this? [y/N]") && !screen.contains("created"),
        "{screen}"
    );
    assert_eq!(bench.emulator.take_requests(), []);
    assert!(bench.up().ok().out.contains("3 created"), "the lock is free");
}

#[test]
fn colours_are_for_terminals_unless_somebody_says_otherwise() {
    let bench = Bench::new();
    bench.write(&three());
    let preview = |environment: &[(&str, &str)], more: &[&str]| -> Ran {
        let mut command = bench.command("preview", &[&["--config=project=home"], more].concat());
        command.env_remove("NO_COLOR").envs(environment.iter().copied());
        command.output().unwrap().into()
    };
    assert!(!preview(&[], &[]).ok().out.contains(ESCAPE));
    assert!(preview(&[("CLICOLOR_FORCE", "1")], &[]).ok().out.contains(ESCAPE));
    assert!(preview(&[], &["--color", "always"]).ok().out.contains(ESCAPE));
    assert!(preview(&[("BINDERY_COLOR", "always")], &[]).ok().out.contains(ESCAPE));
    assert!(
        !preview(&[("CLICOLOR_FORCE", "1")], &["--color=never"])
            .ok()
            .out
            .contains(ESCAPE)
    );
    let screen = on_terminal(&bench, "--yes --color never", "", &[]);
    let colours = ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m"];
    assert!(!colours.iter().any(|colour| screen.contains(colour)), "{screen}");
    let screen = on_terminal(&bench, "--yes", "", &[("NO_COLOR", "1")]);
    assert!(!colours.iter().any(|colour| screen.contains(colour)), "{screen}");
}

fn interrupt(process: u32) {
    send("-INT", process);
}

fn send(signal: &str, process: u32) {
    let killed = Command::new("kill")
        .args([signal, &process.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Starts an `up` of three resources, one after the other, and waits until the first is under way.
fn under_way(bench: &Bench) -> std::process::Child {
    bench.write(&three());
    bench.emulator.set(slow(1500));
    let mut up = bench.command("up", &["--yes", "--config=project=home", "--parallel=1"]);
    let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!((0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        bench.emulator.arrived() > 0
    }));
    up
}

#[test]
fn an_interrupt_ends_a_run_after_what_is_under_way() {
    ends_after_what_is_under_way("-INT");
}

#[test]
fn so_does_being_asked_to_end() {
    ends_after_what_is_under_way("-TERM");
}

fn ends_after_what_is_under_way(signal: &str) {
    let bench = Bench::new();
    let up = under_way(&bench);
    send(signal, up.id());
    let ran: Ran = up.wait_with_output().unwrap().into();
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(ran.err.contains("stopping after what is under way"), "{}", ran.err);
    assert!(ran.out.contains("1 created, 2 skipped"), "{}", ran.out);
    assert_eq!(bench.names(), ["a"]);
    assert_eq!(bench.state()["deployment"].get("pending_operations"), None);
    bench.emulator.set(Settings::default());
    assert!(bench.up().ok().out.contains("2 created"));
}

#[test]
fn a_second_interrupt_ends_it_at_once_and_nothing_is_lost() {
    let bench = Bench::new();
    let up = under_way(&bench);
    interrupt(up.id());
    std::thread::sleep(Duration::from_millis(200));
    interrupt(up.id());
    let ran: Ran = up.wait_with_output().unwrap().into();
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(!ran.out.contains("created"), "{}", ran.out);
    bench.emulator.set(Settings::default());
    let again = bench.up().ok();
    assert!(
        again.out.contains("a: settled after an interrupted run"),
        "{}",
        again.out
    );
    assert_eq!(bench.names(), ["a", "b", "c"]);
    for role in ["roles/a", "roles/b", "roles/c"] {
        assert_eq!(bench.members(BUCKET, role), ["user:ann@example.com"]);
    }
}

#[test]
fn a_reader_that_has_gone_is_no_reason_to_stop() {
    let bench = Bench::new();
    bench.write(&three());
    let mut up = bench.command("up", &["--yes", "--config=project=home"]);
    let mut up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(up.stdout.take());
    drop(up.stderr.take());
    assert!(up.wait().unwrap().success());
    assert_eq!(bench.names(), ["a", "b", "c"]);
}

#[test]
fn the_completions_are_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(env!("CARGO_BIN_EXE_bindery"))
            .args(["completions", shell])
            .output()
            .unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("bindery") && script.contains("preview"), "{shell}");
    }
}
