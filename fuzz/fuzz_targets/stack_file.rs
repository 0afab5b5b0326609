//! A stack file: read, or refused with places that are in it.
#![no_main]

use bindery_stack::StackFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match StackFile::parse(text) {
        Ok(file) => assert_eq!(file.in_order().count(), file.resources.len()),
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            let lines = text.split(['\n', '\r']).count();
            for position in diagnostics.iter().filter_map(|diagnostic| diagnostic.position) {
                assert!(position.line >= 1 && position.line <= lines + 1, "{position:?}");
            }
        }
    }
});
