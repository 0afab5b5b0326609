//! The files of a stack's state: what cannot be used is left alone, and what was is kept.

use std::fs;
use std::path::PathBuf;

use crate::harness::{BUCKET, Bench, member};

fn folder(bench: &Bench) -> PathBuf {
    bench.file().with_file_name(".bindery").join("tests/dev")
}

fn applied() -> (Bench, String) {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    bench.emulator.take_requests();
    let text = fs::read_to_string(folder(&bench).join("state.json")).unwrap();
    (bench, text)
}

#[test]
fn a_state_that_cannot_be_used_is_said_plainly_and_left_as_it_is() {
    let (bench, good) = applied();
    let state = folder(&bench).join("state.json");
    for (text, expected) in [
        ("{".to_string(), "it is not a deployment document"),
        (good[..good.len() / 2].to_string(), "it is not a deployment document"),
        (String::new(), "it is not a deployment document"),
        (
            good.replacen("\"version\": 3", "\"version\": 4", 1),
            "it is a deployment of version 4",
        ),
        (r#"{"version": 3}"#.to_string(), "missing field `deployment`"),
        (
            good.replace("::tests::", "::other::"),
            "it is of the stack `other/dev`, not `tests/dev`",
        ),
        (
            good.replace("pulumi:dev::", "pulumi:prod::"),
            "it is of the stack `tests/prod`, not `tests/dev`",
        ),
        (
            good.replace("pulumi:providers:bindery", "pulumi:providers:acme"),
            "it was made with the provider `acme`",
        ),
        (
            good.replace("\"etag\"", "\"4dabf18193072939515e22adb298388d\""),
            "it holds a secret, which only Pulumi keeps",
        ),
        (
            good.replacen(
                "\"custom\": true,\n        \"id\": \"projects",
                "\"custom\": true,\n        \"external\": true,\n        \"id\": \"projects",
                1,
            ),
            "it is external",
        ),
    ] {
        assert_ne!(text, good, "{expected}");
        fs::write(&state, &text).unwrap();
        for command in ["up", "preview", "refresh", "destroy"] {
            let more: &[&str] = if command == "preview" {
                &["--config=project=home"]
            } else {
                &["--config=project=home", "--yes"]
            };
            let ran = bench.run(command, more);
            assert_eq!(ran.code, Some(1), "{command}: {}", ran.out);
            assert!(
                ran.err.contains(expected) && ran.err.contains("nothing was changed"),
                "{}",
                ran.err
            );
        }
        assert_eq!(fs::read_to_string(&state).unwrap(), text);
    }
    assert_eq!(bench.emulator.take_requests(), []);
    fs::write(&state, good).unwrap();
    assert!(bench.up().ok().out.contains("1 unchanged"));
}

#[test]
fn a_damaged_journal_is_left_as_it_is_and_a_torn_one_counts_up_to_its_last_whole_line() {
    let (bench, good) = applied();
    let journal = folder(&bench).join("state.journal");
    fs::write(&journal, "{\"after\":\"x\"\n{}\n{}\n").unwrap();
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(up.err.contains("its journal is damaged at line 1"), "{}", up.err);
    assert_eq!(fs::read_to_string(folder(&bench).join("state.json")).unwrap(), good);
    assert!(journal.exists());
    fs::write(&journal, "{\"after\":\"x").unwrap();
    assert!(bench.up().ok().out.contains("1 unchanged"));
    assert!(!journal.exists());
}

#[test]
fn a_journal_of_another_state_is_put_aside() {
    let (bench, _) = applied();
    let journal = folder(&bench).join("state.journal");
    fs::write(&journal, format!("{{\"after\":\"{}\"}}\n", "0".repeat(64))).unwrap();
    let up = bench.up().ok();
    assert!(
        up.out.contains("1 unchanged") && up.err.contains("it is put aside as"),
        "{}",
        up.err
    );
    assert!(!journal.exists());
    let kept = fs::read_dir(folder(&bench).join("backups")).unwrap();
    let names: Vec<String> = kept
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.ends_with(".journal")), "{names:?}");
}

#[test]
fn each_run_keeps_a_copy_of_the_state_that_it_found_and_the_last_ten_stay() {
    let bench = Bench::new();
    let mut states = Vec::new();
    for run in 0..14 {
        bench.write(&member("a", &format!("roles/r{run}"), "user:ann@example.com"));
        bench.up().ok();
        states.push(fs::read_to_string(folder(&bench).join("state.json")).unwrap());
    }
    // Nothing has changed since the copy: there is no other.
    bench.up().ok();
    bench.up().ok();
    let mut copies: Vec<PathBuf> = fs::read_dir(folder(&bench).join("backups"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    copies.sort();
    let copies: Vec<String> = copies.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(copies, states[4..]);
}

#[test]
fn a_lock_whose_process_is_dead_is_not_in_the_way() {
    let (bench, _) = applied();
    let lock = folder(&bench).join("lock");
    assert!(
        fs::read_to_string(&lock)
            .unwrap()
            .contains("\"command\":\"bindery up\"")
    );
    fs::write(
        &lock,
        r#"{"command":"bindery up","process":1,"user":"me","machine":"here","since":"ever"}"#,
    )
    .unwrap();
    bench.up().ok();
}

#[test]
fn what_cannot_be_written_stops_the_run_before_anything_is_asked_of_a_service() {
    let (bench, _) = applied();
    bench.write(&member("b", "roles/y", "user:bob@example.com"));
    // Nobody, root least of all, can write a journal that is a folder.
    fs::create_dir(folder(&bench).join("state.journal")).unwrap();
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(up.err.contains("state.journal cannot be read"), "{}", up.err);
    assert_eq!(bench.emulator.take_requests(), []);
    assert_eq!(bench.members(BUCKET, "roles/y"), Vec::<String>::new());
}

#[test]
fn a_link_to_a_state_stays_a_link() {
    let (bench, _) = applied();
    let state = folder(&bench).join("state.json");
    let real = bench.file().with_file_name("elsewhere.json");
    fs::rename(&state, &real).unwrap();
    std::os::unix::fs::symlink(&real, &state).unwrap();
    bench.write(&member("a", "roles/y", "user:ann@example.com"));
    bench.up().ok();
    assert!(state.is_symlink());
    assert!(fs::read_to_string(real).unwrap().contains("roles/y"));
}

#[test]
fn what_a_killed_run_left_half_written_is_cleaned_away() {
    let (bench, _) = applied();
    let left = folder(&bench).join(".writing-abc");
    fs::write(&left, "{").unwrap();
    bench.up().ok();
    assert!(!left.exists());
}

#[test]
fn a_persons_own_copies_stay_and_a_clock_that_went_back_hides_no_backup() {
    let (bench, _) = applied();
    let backups = folder(&bench).join("backups");
    fs::create_dir_all(&backups).unwrap();
    fs::write(backups.join("zz-before-migration.json"), "{}").unwrap();
    fs::write(backups.join("2999-01-01T00-00-00.000000Z.json"), "{}").unwrap();
    for run in 0..12 {
        bench.write(&member("a", &format!("roles/r{run}"), "user:ann@example.com"));
        bench.up().ok();
    }
    assert!(backups.join("zz-before-migration.json").exists());
    let names = fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert_eq!(names.len(), 11, "{names:?}");
    assert!(
        names.contains(&"2999-01-01T00-00-00.000000Z-000012.json".to_string()),
        "{names:?}"
    );
}
