//! A second, unrelated provider, hosted by the same sandbox: its own package, types and configuration.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use bindery_resource::{PropertyPath, Value};
use bindery_sandbox::error::{CheckError, ConfigureError};
use bindery_sandbox::{DeleteReason, Deleted, Event, Limits, Run, Tenant, TenantOptions};
use bindery_tests::{ACME, RUNTIME, context, properties, tenant, urn};
use serde_json::json;
use std::sync::Arc;

const VOLUME: &str = "acme:disks/v2:Volume";

async fn acme() -> Tenant {
    tenant(
        &ACME,
        json!({"region": "north", "maxGb": 1000}),
        &["https://disks.acme.example"],
        Limits::default(),
    )
    .await
}

fn volume() -> serde_json::Value {
    json!({
        "name": "data", "sizeGb": 10, "fillRatio": 0.75, "encrypted": true, "kind": "cold-storage",
        "labels": {"team": "storage", "a.b": "c"},
        "partitions": [{"startByte": "0", "bootable": true}, {"label": "home", "startByte": "9223372036854775807", "bootable": false}],
        "placement": {"zone": "n1", "rack": 255},
    })
}

#[tokio::test]
async fn it_is_what_its_exports_say() {
    assert_eq!((ACME.name.as_str(), ACME.version.as_str()), ("acme", "1.4.0"));
    let documented = ACME.documented();
    let ty = documented.resource_type(VOLUME).unwrap();
    assert_eq!(ty.docs.as_deref(), Some("A volume of a disk array."));
    assert_eq!(
        ty.args.property("sizeGb").unwrap().docs.as_deref(),
        Some("How large it is.")
    );
    assert_eq!(
        documented.config.property("region").unwrap().docs.as_deref(),
        Some("The data centre.")
    );
    assert!(acme().await.denied_origins().is_empty());
    assert_eq!(
        tenant(&ACME, json!({}), &[], Limits::default()).await.denied_origins(),
        ["https://disks.acme.example"]
    );
}

#[tokio::test]
async fn its_configuration_is_checked_by_itself() {
    let configure = |config| {
        let options = TenantOptions {
            config: properties(config),
            ..TenantOptions::default()
        };
        Tenant::new(&RUNTIME, Arc::clone(&ACME), options)
    };
    let reason = |error: ConfigureError| error.to_string();
    assert_eq!(
        reason(configure(json!({"region": "moon"})).await.unwrap_err()),
        "`region`: has no air"
    );
    assert!(reason(configure(json!({"maxGb": -1})).await.unwrap_err()).contains("from 0 to 4294967295"));
    assert!(reason(configure(json!({"regoin": "x"})).await.unwrap_err()).contains("did you mean `region`?"));
}

#[tokio::test]
async fn every_type_of_property_makes_the_whole_way() {
    let tenant = acme().await;
    let (run, urn) = (Run::new(), urn(VOLUME, "data"));
    let checked = tenant.check(&run, &urn, VOLUME, &properties(volume())).await.unwrap();
    assert_eq!(checked.inputs.get("quotaBytes"), Some(&Value::from("10737418240")));
    assert_eq!(checked.footprint.as_ref().unwrap().claim, "volume data");
    assert_eq!(checked.id, None);
    let (context, events) = context(10);
    let made = tenant.create(&context, VOLUME, &checked.inputs).await.unwrap();
    assert_eq!(made.id, "volumes/data");
    let mut expected = volume();
    expected["quotaBytes"] = json!("10737418240");
    expected["serial"] = json!("-10");
    assert_eq!(Value::Object(made.outputs.clone()).to_json().unwrap(), json!(expected));
    assert_eq!(*events.lock().unwrap(), [Event::Debug("spinning up data".to_string())]);

    assert!(
        tenant
            .diff(VOLUME, &made.id, &made.outputs, &checked.inputs)
            .await
            .unwrap()
            .changes
            .is_empty()
    );
    let read = tenant
        .read(&context, VOLUME, &made.id, Some(&made.outputs))
        .await
        .unwrap();
    assert_eq!(read, Some(made.clone()));
    assert_eq!(
        tenant.read(&context, VOLUME, "volumes/other", None).await.unwrap(),
        None
    );

    let mut larger = checked.inputs.clone();
    larger.insert("sizeGb".into(), Value::Number(20.0));
    let diff = tenant.diff(VOLUME, &made.id, &made.outputs, &larger).await.unwrap();
    assert_eq!((diff.changes.len(), diff.replaces()), (1, false));
    let grown = tenant.update(&context, VOLUME, &made, &larger).await.unwrap();
    assert_eq!(grown.outputs.get("serial"), Some(&Value::from("-20")));
    assert_eq!(
        events.lock().unwrap().last(),
        Some(&Event::Warning("growing takes a while".to_string()))
    );

    let mut smaller = checked.inputs;
    smaller.insert("sizeGb".into(), Value::Number(1.0));
    let diff = tenant.diff(VOLUME, &grown.id, &grown.outputs, &smaller).await.unwrap();
    // The smaller one has the same name, so the larger must go first; and it goes, although its own URN claims the name.
    assert!(diff.replaces() && diff.delete_before_replace);
    let deleted = tenant
        .delete(&Run::new(), &context, &urn, VOLUME, &grown, DeleteReason::NotDeclared)
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::Removed);
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_its_path() {
    let tenant = acme().await;
    let check = async |inputs: serde_json::Value| {
        let checked = tenant
            .check(&Run::new(), &urn(VOLUME, "x"), VOLUME, &properties(inputs))
            .await;
        match checked.unwrap_err() {
            CheckError::Failures(failures) => failures
                .into_iter()
                .map(|failure| failure.path.to_string())
                .collect::<Vec<_>>(),
            other => panic!("{other}"),
        }
    };
    let mut wrong = volume();
    wrong["sizeGb"] = json!(10.5);
    wrong["partitions"][1]["startByte"] = json!(7);
    wrong["placement"]["rack"] = json!(256);
    wrong["labels"]["team"] = json!(1);
    assert_eq!(
        check(wrong).await,
        ["sizeGb", "labels.team", "partitions[1].startByte", "placement.rack"]
    );
    let mut wrong = volume();
    wrong["sizeGb"] = json!(2000);
    wrong["partitions"][0]["startByte"] = json!("-1");
    assert_eq!(check(wrong).await, ["sizeGb", "partitions[0].startByte"]);
}

#[tokio::test]
async fn what_is_unknown_stays_unknown_and_so_do_the_defaults_that_depend_on_it() {
    let tenant = acme().await;
    let mut inputs = properties(volume());
    inputs.insert("sizeGb".into(), Value::Unknown);
    inputs.insert("placement".into(), Value::Unknown);
    let checked = tenant
        .check(&Run::new(), &urn(VOLUME, "x"), VOLUME, &inputs)
        .await
        .unwrap();
    assert_eq!(checked.inputs.get("sizeGb"), Some(&Value::Unknown));
    assert_eq!(checked.inputs.get("placement"), Some(&Value::Unknown));
    assert_eq!(checked.inputs.get("quotaBytes"), None);
    assert!(checked.footprint.is_some());
    inputs.insert("name".into(), Value::Unknown);
    assert!(
        tenant
            .check(&Run::new(), &urn(VOLUME, "x"), VOLUME, &inputs)
            .await
            .unwrap()
            .footprint
            .is_none()
    );
    let (context, _) = context(10);
    let made = tenant.create(&context, VOLUME, &checked.inputs).await;
    assert!(made.unwrap_err().to_string().contains("`sizeGb`: is not known yet"));
    let preview = tenant.preview(VOLUME, &checked.inputs).unwrap();
    assert_eq!(PropertyPath::property("serial").get(&preview), Some(&Value::Unknown));
}

#[tokio::test]
async fn an_error_comes_as_the_provider_says_it() {
    let tenant = acme().await;
    let mut broken = properties(volume());
    broken.insert("name".into(), Value::from("broken"));
    let (context, _) = context(10);
    let error = tenant.create(&context, VOLUME, &broken).await.unwrap_err();
    assert_eq!(error.to_string(), "the array is full");
    assert!(!error.may_have_effect);
    let error = tenant.create(&context, "acme:disks/v1:Disk", &broken).await;
    assert!(error.unwrap_err().to_string().contains("no resource type"));
}
