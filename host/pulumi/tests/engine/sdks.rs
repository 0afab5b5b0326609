//! The schema under the engine's own checks, and the SDKs that are made from it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bindery_test_guests::ACME;

use crate::harness::*;

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn the_engine_finds_the_schema_right() {
    let stack = Stack::new("runtime: yaml\n");
    for name in ["bindery", "google-native", "acme"] {
        let link = stack.link(name);
        std::fs::write(link.with_file_name("acme.wasm"), ACME).unwrap();
        stack.pulumi(&["schema", "check", link.to_str().unwrap()]).ok();
        let printed = stack.pulumi(&["package", "get-schema", link.to_str().unwrap()]).ok();
        assert!(printed.contains(&format!("\"name\": \"{name}\"")), "{printed}");
    }
}

/// Whether a file of this name, whatever its ending, is somewhere in a folder.
fn has_file(folder: &Path, stem: &str) -> bool {
    let mut entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.any(|path| {
        if path.is_dir() {
            has_file(&path, stem)
        } else {
            path.file_stem().is_some_and(|found| found == stem)
        }
    })
}

/// A schema in a file, and a folder for what is made from it.
fn schema(stack: &Stack, name: &str) -> (String, PathBuf) {
    let link = stack.link(name);
    if name == "acme" {
        std::fs::write(link.with_file_name("acme.wasm"), ACME).unwrap();
    }
    let schema = stack.pulumi(&["package", "get-schema", link.to_str().unwrap()]).ok();
    let file = format!("{name}.json");
    stack.file(&file, &schema);
    (file, stack.project().join(name))
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn sdks_are_generated_and_compile() {
    let stack = Stack::new("runtime: yaml\n");
    let run = |program: &str, arguments: &[&str], folder: &PathBuf| {
        let mut command = stack.command(program, arguments);
        // Go and npm keep what they have built in the machine's own folders.
        command.env("HOME", std::env::var("HOME").unwrap()).current_dir(folder);
        Ran::from(command.output().unwrap()).ok()
    };
    for name in ["bindery", "acme"] {
        let (schema, folder) = schema(&stack, name);
        for language in ["nodejs", "python", "go"] {
            let out = folder.join(language);
            run("gen-sdk", &[&schema, language, out.to_str().unwrap()], &stack.project());
        }
        for language in ["dotnet", "java"] {
            let out = folder.join(language);
            run("sdks", &[&schema, language, out.to_str().unwrap()], &stack.project());
            let class = if name == "acme" {
                "Volume"
            } else {
                "BackendBucketIamMember"
            };
            assert!(has_file(&out, class), "no {class} in {language}");
        }
        let node = folder.join("nodejs");
        symlink(ENGINE.join("node/node_modules"), node.join("node_modules")).unwrap();
        run("node", &["node_modules/typescript/bin/tsc", "--outDir", "out"], &node);
        let python = ENGINE.join("venv/bin/python").display().to_string();
        let import = match name {
            "bindery" => {
                "from pulumi_bindery.compute.v1 import BackendBucketIamMember; from pulumi_bindery.iam.v1 import ConditionArgs"
            }
            _ => "from pulumi_acme.disks.v2 import Volume, PartitionArgs, PlacementArgs",
        };
        // An installed package knows its version.
        let metadata = folder.join(format!("python/pulumi_{name}-1.0.0.dist-info"));
        std::fs::create_dir(&metadata).unwrap();
        let text = format!("Metadata-Version: 2.1\nName: pulumi_{name}\nVersion: 1.0.0\n");
        std::fs::write(metadata.join("METADATA"), text).unwrap();
        run(&python, &["-c", import], &folder.join("python"));
        run(&python, &["-m", "compileall", "-q", "."], &folder.join("python"));
        // The module that the engine is built from has what the generated code needs.
        let go = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/engine");
        for file in ["go.mod", "go.sum"] {
            std::fs::copy(go.join(file), folder.join("go").join(file)).unwrap();
        }
        let module = std::fs::read_to_string(folder.join("go/go.mod")).unwrap();
        let module = module.replace(
            "module bindery.dev/tests/engine",
            &format!("module example.com/pulumi-{name}/sdk/go"),
        );
        std::fs::write(folder.join("go/go.mod"), module).unwrap();
        run("go", &["build", "./..."], &folder.join("go"));
    }
}
