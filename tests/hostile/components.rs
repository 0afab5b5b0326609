//! Those that are not what they say, or want what they do not get: refused before anything of them runs.

use std::fs;
use std::path::Path;

use bindery_sandbox::package::{ComponentFile, Package};
use bindery_tests::RUNTIME;
use tempfile::TempDir;
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

use crate::quiet::Quiet;

/// A component of a world, whose functions all stop at once.
fn dummy(wit: &Path, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if fs::metadata(entry.path()).unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn refused(bytes: &[u8]) -> String {
    RUNTIME.load(bytes).unwrap_err().to_string()
}

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn hostile_imports_are_refused_by_name() {
    for (package, interface, function) in [
        (
            "wasi:filesystem@0.2.6",
            "preopens",
            "get-directories: func() -> list<u32>;",
        ),
        (
            "wasi:sockets@0.2.6",
            "instance-network",
            "instance-network: func() -> u32;",
        ),
        ("wasi:cli@0.2.6", "run", "run: func() -> result;"),
        ("wasi:http@0.3.0", "client", "send: func();"),
        ("evil:host@1.0.0", "shell", "execute: func(command: string) -> string;"),
    ] {
        let folder = TempDir::new().unwrap();
        copy(&Path::new(ROOT).join("guests/unruly/wit"), folder.path());
        let (name, version) = package.split_once('@').unwrap();
        let import = folder.path().join("deps/wanted");
        fs::create_dir_all(&import).unwrap();
        let text = format!("package {package};\ninterface {interface} {{ {function} }}\n");
        fs::write(import.join("wanted.wit"), text).unwrap();
        let world = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|extension| extension == "wit"))
            .unwrap();
        let text = fs::read_to_string(&world).unwrap();
        let wanted = format!("world provider {{\n    import {name}/{interface}@{version};");
        fs::write(&world, text.replace("world provider {", &wanted)).unwrap();
        let said = refused(&dummy(folder.path(), "provider"));
        assert!(
            said.contains(&format!("imports `{name}/{interface}@{version}`")),
            "{said}"
        );
    }
    // Without it, it is a provider like any other.
    RUNTIME
        .load(&dummy(&Path::new(ROOT).join("guests/unruly/wit"), "provider"))
        .unwrap();
}

#[test]
fn hostile_numbers_of_memories_tables_and_instances_are_refused() {
    // One call of any of them would take the slots of a hundred others.
    for (module, count, what) in [
        ("(memory 0)", 3, "memor"),
        ("(table 0 funcref) (table 0 funcref)", 6, "table"),
        ("", 100, "core module instances"),
    ] {
        let instances = "(core instance (instantiate $m))".repeat(count);
        let text = format!("(component (core module $m {module}) {instances})");
        let said = refused(&wat::parse_str(&text).unwrap());
        assert!(said.contains(what) && said.contains("exceeds"), "{what}: {said}");
    }
}

#[test]
fn hostile_names_give_nothing_that_is_the_built_in_providers() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("bindery.wasm");
    fs::write(&path, dummy(&Path::new(ROOT).join("../wit"), "provider")).unwrap();
    let package = Package::open(&RUNTIME, &ComponentFile { path, digest: None }).unwrap();
    assert_eq!(
        (package.component.name.as_str(), package.component.version.as_str()),
        ("bindery", "0.32.0"),
        "it says that it is the built-in provider"
    );
    assert!(package.manifest.origins.is_empty() && !package.manifest.is_google());
    assert!(package.manifest.environment.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_files_are_refused_however_they_are_broken() {
    let quiet = Quiet::begin().await;
    let whole = bindery_test_guests::UNRULY;
    for length in [0, 1, 4, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
        let said = refused(&whole[..length]);
        // Its first eight bytes are a whole component, with nothing in it.
        let reason = if length == 8 {
            "not a provider"
        } else {
            "not a WebAssembly component"
        };
        assert!(said.contains(reason), "{length}: {said}");
    }
    // A byte changed here and there: whatever it becomes, it is loaded or refused, and nothing else happens.
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..24 {
        let mut changed = whole.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
        }
        let _ = RUNTIME.load(&changed);
    }
    assert!(refused(b"\0asm\x01\0\0\0").contains("it is a module"));
    assert!(refused(&vec![0; 65 << 20]).contains("at most"));
    quiet.was_answered().await;
}
