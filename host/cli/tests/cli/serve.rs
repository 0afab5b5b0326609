//! `bindery serve`: what it says of a file, and how it ends. What it serves is tested with the protocol.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const TENANTS: &str =
    "[[tenant]]\nname = \"one\"\nport = 0\n\n[[tenant]]\nname = \"other\"\nport = 0\npackage = \"google-native\"\n";

fn serve(text: &str, more: &[&str]) -> (TempDir, Command) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tenants.toml");
    std::fs::write(&file, text).unwrap();
    let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
    bindery
        .env_clear()
        .env("BINDERY_CACHE_DIR", folder.path().join("cache"))
        .args(["serve", "--tenants", "tenants.toml"])
        .args(more)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    (folder, bindery)
}

#[test]
fn a_file_of_which_something_is_wrong_is_refused_with_its_line() {
    let text = format!("{TENANTS}[tenant.credential]\ncredentials = \"missing.json\"\n[tenant.limits]\nmemory = 0\n");
    let (_folder, mut bindery) = serve(&text, &[]);
    let ended = bindery.output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        said.contains("tenants.toml:10:15") && said.contains("missing.json"),
        "{said}"
    );
    assert!(said.contains("tenants.toml:12:10"), "{said}");
    assert!(ended.stdout.is_empty(), "nothing is served");
    let (_folder, mut bindery) = serve(&text, &["--json"]);
    let document: Value = serde_json::from_slice(&bindery.output().unwrap().stdout).unwrap();
    assert_eq!(document["errors"][0]["line"], 10);
    let (folder, mut bindery) = serve("", &[]);
    std::fs::remove_file(folder.path().join("tenants.toml")).unwrap();
    let said = String::from_utf8(bindery.output().unwrap().stderr).unwrap();
    assert!(said.contains("tenants.toml cannot be read"), "{said}");
}

#[test]
fn it_says_where_its_tenants_are_logs_in_json_and_ends_when_it_is_told_to() {
    let (_folder, mut bindery) = serve(TENANTS, &[]);
    let mut child = bindery.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (one, other) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    assert!(
        one.starts_with("one at 127.0.0.1:") && one.contains("PULUMI_DEBUG_PROVIDERS=bindery:"),
        "{one}"
    );
    assert!(other.contains("PULUMI_DEBUG_PROVIDERS=google-native:"), "{other}");
    let port: u16 = one.rsplit(':').next().unwrap().parse().unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(child.wait().unwrap().success());
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        events
            .iter()
            .any(|event| event["message"] == "serving" && event["tenant"] == "other"),
        "{log}"
    );
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
