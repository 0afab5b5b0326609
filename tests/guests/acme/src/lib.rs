//! A provider of disks that exist in its answers only. It shares nothing with the built-in provider but the contract.
#![cfg(target_family = "wasm")]

wit_bindgen::generate!({ path: "wit", world: "provider", generate_all });

use bindery::engine::types::{Change, ChangeKind, Effect, Error, ErrorCode, Failure, Footprint};
use exports::acme::disks::{volume, volume_plan};
use exports::acme::provider::about;

use acme::disks::types::{Config, VolumeArgs, VolumeState};

struct Acme;

export!(Acme);

impl about::Guest for Acme {
    fn configure(config: Config, _: Vec<String>) -> Result<Vec<String>, Vec<Failure>> {
        match config.region.as_deref() {
            Some("moon") => Err(vec![Failure {
                path: "region".to_string(),
                reason: "has no air".to_string(),
            }]),
            _ => Ok(vec!["https://disks.acme.example".to_string()]),
        }
    }
}

fn is_unknown(unknown: &[String], path: &str) -> bool {
    unknown.iter().any(|unknown| unknown == path)
}

fn footprint(name: &str) -> Footprint {
    Footprint {
        target: "array".to_string(),
        claim: format!("volume {name}"),
    }
}

impl volume_plan::Guest for Acme {
    fn check(config: Config, mut args: VolumeArgs, unknown: Vec<String>) -> Result<volume_plan::Checked, Vec<Failure>> {
        let mut failures = Vec::new();
        let largest = config.max_gb.unwrap_or(u32::MAX);
        if !is_unknown(&unknown, "sizeGb") && !(1..=largest).contains(&args.size_gb) {
            failures.push(Failure {
                path: "sizeGb".to_string(),
                reason: format!("must be from 1 to {largest}"),
            });
        }
        for (index, partition) in args.partitions.iter().enumerate() {
            let path = format!("partitions[{index}].startByte");
            if partition.start_byte < 0 && !is_unknown(&unknown, &path) {
                failures.push(Failure {
                    path,
                    reason: "must not be negative".to_string(),
                });
            }
        }
        if !failures.is_empty() {
            return Err(failures);
        }
        if args.quota_bytes.is_none() && !is_unknown(&unknown, "quotaBytes") && !is_unknown(&unknown, "sizeGb") {
            args.quota_bytes = Some(u64::from(args.size_gb) << 30);
        }
        let footprint = (!is_unknown(&unknown, "name")).then(|| footprint(&args.name));
        Ok(volume_plan::Checked {
            args,
            footprint,
            id: None,
        })
    }

    fn diff(_: Config, old: VolumeState, new: VolumeArgs, unknown: Vec<String>) -> Result<Vec<Change>, Failure> {
        let changed = [
            ("name", old.name != new.name, true),
            // A volume can grow in place, and not shrink.
            ("sizeGb", old.size_gb != new.size_gb, new.size_gb < old.size_gb),
            ("encrypted", old.encrypted != new.encrypted, true),
            ("labels", old.labels != new.labels, false),
        ];
        let changes = changed
            .into_iter()
            .filter(|(path, is_changed, _)| *is_changed || is_unknown(&unknown, path));
        Ok(changes
            .map(|(path, _, replaces)| Change {
                path: path.to_string(),
                kind: ChangeKind::Update,
                replaces,
            })
            .collect())
    }

    fn footprint_of(_: Config, old: VolumeState) -> Result<Footprint, Failure> {
        Ok(footprint(&old.name))
    }
}

fn made(args: VolumeArgs) -> VolumeState {
    VolumeState {
        id: format!("volumes/{}", args.name),
        serial: -i64::from(args.size_gb),
        quota_bytes: args.quota_bytes.unwrap_or_default(),
        name: args.name,
        size_gb: args.size_gb,
        fill_ratio: args.fill_ratio,
        encrypted: args.encrypted,
        kind: args.kind,
        labels: args.labels,
        partitions: args.partitions,
        placement: args.placement,
    }
}

impl volume::Guest for Acme {
    fn create(_: Config, args: VolumeArgs) -> Result<VolumeState, Error> {
        println!("spinning up {}", args.name);
        if args.name == "broken" {
            return Err(Error {
                code: ErrorCode::FailedPrecondition,
                message: "the array is full".to_string(),
                effect: Effect::None,
                retry_after: None,
            });
        }
        Ok(made(args))
    }

    fn read(_: Config, id: String, last: Option<VolumeState>) -> Result<Option<VolumeState>, Error> {
        Ok(last.filter(|last| last.id == id))
    }

    fn update(_: Config, _: VolumeState, new: VolumeArgs) -> Result<VolumeState, Error> {
        eprintln!("growing takes a while");
        Ok(made(new))
    }

    fn delete(_: Config, _: VolumeState) -> Result<(), Error> {
        Ok(())
    }
}
