//! A provider that is not the built-in one, from a folder of the project.

use bindery_test_guests::ACME;

use crate::harness::*;

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_component_beside_the_link_is_a_provider() {
    let stack = Stack::new("runtime: yaml\n");
    let link = stack.link("acme");
    let folder = link.parent().unwrap();
    std::fs::write(folder.join("acme.wasm"), ACME).unwrap();
    let volume = |size: u32| {
        format!(
            "  data:\n    type: acme:disks/v2:Volume\n    properties:\n      name: data\n      sizeGb: {size}\n      encrypted: true\n      \
             kind: cold-storage\n      quotaBytes: '9007199254740993'\n      labels: {{a.b: c}}\n      partitions: [{{startByte: '0', \
             bootable: true}}]\n"
        )
    };
    stack.write(&volume(10));
    let denied = stack.pulumi(&["preview"]).failed();
    assert!(denied.contains("url = \"https://disks.acme.example\""), "{denied}");
    std::fs::write(
        folder.join("acme.toml"),
        "[[origin]]\nurl = \"https://disks.acme.example\"\n",
    )
    .unwrap();
    stack.set("acme:maxGb", "1000");
    stack.up().ok();
    let made = &stack.resources()[0];
    assert_eq!(made["id"], "volumes/data");
    assert_eq!(made["outputs"]["quotaBytes"], "9007199254740993");
    stack.nothing_to_do();
    stack.write(&volume(2000));
    let failed = stack.pulumi(&["preview"]).failed();
    assert!(failed.contains("must be from 1 to 1000"), "{failed}");
    stack.write(&volume(20));
    let changed = stack.up().ok();
    assert!(changed.contains("1 updated"), "{changed}");
    stack.destroy().ok();
}
