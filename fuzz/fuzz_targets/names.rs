//! Names of targets and roles, ids, and what an import names: what is accepted is printed in a form that means the same.
#![no_main]

use bindery_policy::config::{Config, IdentityForms};
use bindery_policy::grant_id::GrantId;
use bindery_policy::import::Sought;
use bindery_policy::role::Role;
use bindery_policy::target::{Target, TargetKind};
use libfuzzer_sys::fuzz_target;

const KINDS: [TargetKind; 3] = [
    TargetKind::BackendBucket,
    TargetKind::MigrationJob,
    TargetKind::EdgeCacheOrigin,
];

fuzz_target!(|text: &str| {
    let config = Config {
        project: Some("home".to_string()),
        region: Some("us-east1".to_string()),
        identity_forms: IdentityForms::All,
        ..Config::default()
    };
    if let Ok(role) = Role::parse(text) {
        assert_eq!(role.as_str(), text);
    }
    for kind in KINDS {
        if let Ok(target) = Target::resolve(kind, text, None, &config) {
            assert_eq!(Target::parse(kind, &target.to_string()), Some(target));
        }
        if let Some(id) = GrantId::parse(kind, text) {
            assert_eq!(id.to_string(), text);
        }
        if let Some(id) = GrantId::parse_typed(kind, text) {
            assert_eq!(GrantId::parse(kind, &id.to_string()), Some(id));
        }
        for has_identity in [true, false] {
            if let Ok(sought) = Sought::parse(kind, &config, has_identity, text) {
                assert_eq!(sought.identity.is_some(), has_identity);
            }
        }
    }
});
