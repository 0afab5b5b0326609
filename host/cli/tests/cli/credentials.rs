//! Who makes the requests: the same keys as under Pulumi, where every source is tested.

use std::process::Command;

use bindery_tests::cloud::Cloud;
use tempfile::TempDir;

const STACK: &str = "name: grants
runtime: yaml
config:
  bindery:project: home
  bindery:credentials: user.json
  bindery:scopes: https://scope.example/one
resources:
  ann:
    type: bindery:compute/v1:BackendBucketIamMember
    properties: {name: logs, role: roles/viewer, member: 'user:ann@x.com'}
";

const USER: &str = r#"{"type": "authorized_user", "client_id": "c", "client_secret": "hidden-client", "refresh_token": "hidden-refresh"}"#;

fn bindery(cloud: &Cloud, folder: &TempDir, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .env_clear()
        .envs(cloud.environment())
        .env("BINDERY_CACHE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
        .args(arguments)
        .args([
            "stack.yaml",
            "--yes",
            &format!("--endpoint=compute={}", cloud.origin),
            "--timeout=20",
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

/// Everything in the folder of the state.
fn state(folder: &TempDir) -> String {
    let files = std::fs::read_dir(folder.path().join(".bindery")).unwrap();
    let texts = files.map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default());
    texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_say_who_makes_the_requests_and_are_no_part_of_the_state() {
    let cloud = Cloud::start().await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("stack.yaml"), STACK).unwrap();
    std::fs::write(folder.path().join("user.json"), USER).unwrap();
    let more = [
        "--config=quotaProject=billed",
        "--config=bindery:appendUserAgent=team/1",
    ];
    let (is_done, said) = bindery(&cloud, &folder, &[&["up"], &more[..]].concat());
    assert!(is_done, "{said}");
    assert_eq!(cloud.members(), ["user:ann@x.com"]);
    for request in cloud.arrived("IamPolicy") {
        assert_eq!(request.header("authorization"), "Bearer ya29.given-1");
        assert_eq!(request.header("x-goog-user-project"), "billed");
        assert!(request.header("user-agent").ends_with(" team/1"));
    }
    let asked = cloud.arrived("oauth2.googleapis.com/token").pop().unwrap();
    assert!(asked.body.contains("scope.example"), "{}", asked.body);
    let kept = state(&folder) + &said;
    for part in ["hidden", "user.json", "ya29", "billed", "team/1", "scope.example"] {
        assert!(!kept.contains(part), "{part}: {kept}");
    }
    assert!(kept.contains("home"), "the component's own keys are kept");
    // A credential that is no good any more.
    let acting = [
        "destroy",
        "--config=impersonateServiceAccount=robot@home.iam",
        "--config=accessToken=ya29.hidden",
    ];
    let (is_done, said) = bindery(&cloud, &folder, &acting);
    assert!(!is_done && said.contains("acting as `robot@home.iam`"), "{said}");
    assert!(!said.contains("ya29.hidden"), "{said}");
    let (is_done, said) = bindery(&cloud, &folder, &["destroy"]);
    assert!(is_done && cloud.members().is_empty(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_used_is_named_with_its_place() {
    let cloud = Cloud::start().await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("stack.yaml"), STACK).unwrap();
    let (is_done, said) = bindery(&cloud, &folder, &["up"]);
    assert!(!is_done, "{said}");
    assert!(
        said.contains("user.json cannot be read") && said.contains("stack.yaml:5"),
        "{said}"
    );
    let (_, said) = bindery(
        &cloud,
        &folder,
        &["up", "--config=credentials={\"type\": \"service_account\", \"hidden"],
    );
    assert!(
        said.contains("`credentials`: is no JSON") && !said.contains("hidden"),
        "{said}"
    );
    assert!(cloud.arrived("").is_empty());
}
