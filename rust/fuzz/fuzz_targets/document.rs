//! Documents: no input makes the reader or the splitter panic, and what is read survives being written and read again.
//!
//! `cargo +nightly fuzz run document` in this folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sardonyx_core::document::{Limits, Splitter, canonical, parse, parse_str, serialize};

fuzz_target!(|input: &[u8]| {
    let limits = Limits::default();
    if let Ok(document) = parse(input, &limits) {
        let again = parse_str(&serialize(&document, 0), &limits).expect("serialized text is well-formed");
        assert_eq!(canonical(&again), canonical(&document));
        assert_eq!(again.len(), document.len());
    }
    for record in Splitter::new(input, "a", limits) {
        let _ = record;
    }
});
