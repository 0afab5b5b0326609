//! Identities: what is accepted stays as it is spelled, and equals its canonical form.
#![no_main]

use bindery_policy::config::IdentityForms;
use bindery_policy::identity::{Identity, canonical};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert_eq!(canonical(&canonical(text)), canonical(text));
    let all = Identity::parse(text, IdentityForms::All);
    if let Ok(documented) = Identity::parse(text, IdentityForms::Documented) {
        assert_eq!(Ok(documented), all);
    }
    let Ok(identity) = all else { return };
    assert_eq!(identity.as_str(), text);
    assert!(identity.is(text) && identity.is(&identity.canonical()));
    assert_eq!(Identity::parse(&identity.canonical(), IdentityForms::All), Ok(identity));
});
