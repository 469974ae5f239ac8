//! Cutting large files into record documents.

mod support;

use std::io::Read;

use sardonyx_core::document::{Doctype, Limits, Record, Splitter, SplitterErrorKind, parse};
use support::picture;

/// A source that gives few bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn records(source: &[u8], name: &str) -> Vec<Record> {
    let all: Vec<Record> = Splitter::new(source, name, Limits::default()).map(|record| record.unwrap()).collect();
    for step in [1, 7] {
        let slow: Vec<Record> =
            Splitter::new(Slow(source, step), name, Limits::default()).map(|record| record.unwrap()).collect();
        assert_eq!(slow, all);
    }
    all
}

fn texts(source: &str, name: &str) -> Vec<String> {
    records(source.as_bytes(), name).into_iter().map(|record| String::from_utf8(record.payload).unwrap()).collect()
}

#[test]
fn records_are_cut_where_they_are() {
    let source = "<?xml version='1.0'?>\n<all><!-- <r>no</r> --><r a='1>'>x<r>in</r></r>y<![CDATA[<r>]]><?p <r> ?>\
                  <r/><s><r ><![CDATA[</r>]]>&amp;</r ></s></all>\n";
    let found = records(source.as_bytes(), "r");
    let numbers: Vec<u64> = found.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    for record in &found {
        let at = record.offset as usize;
        assert_eq!(record.payload, &source.as_bytes()[at..at + record.payload.len()]);
    }
    assert_eq!(texts(source, "r"), ["<r a='1>'>x<r>in</r></r>", "<r/>", "<r ><![CDATA[</r>]]>&amp;</r >"]);
    assert_eq!(texts("<r>x</r>", "r"), ["<r>x</r>"]);
    assert_eq!(texts("<a/>", "r"), [""; 0]);
}

#[test]
fn names_are_local_or_as_written() {
    let source = "<a xmlns:p='u' xmlns:q='v'><p:r/><q:r/><r/></a>";
    assert_eq!(texts(source, "r").len(), 3);
    assert_eq!(texts(source, "p:r"), ["<p:r xmlns:p='u' xmlns:q='v'/>"]);
}

#[test]
fn namespaces_of_ancestors_are_declared_again() {
    let source = "<a xmlns='u' xmlns:p='v' xmlns:q=\"w'\"><b xmlns:p='x' xmlns=''>\
                  <r k='&lt;' xmlns:q='y'>t</r></b><r/></a>";
    assert_eq!(
        texts(source, "r"),
        ["<r xmlns:p='x' k='&lt;' xmlns:q='y'>t</r>", "<r xmlns='u' xmlns:p='v' xmlns:q=\"w'\"/>"]
    );
}

#[test]
fn a_document_type_goes_along_where_it_matters() {
    let doctype = "<!DOCTYPE a [<!ENTITY e \"]>'\"><!-- ' ]> --><?p ]> ?>]>";
    let found = texts(&format!("{doctype}<a><r>&e;</r><r>&amp;&#65;</r></a>"), "r");
    assert_eq!(found, [format!("{doctype}<r>&e;</r>"), "<r>&amp;&#65;</r>".into()]);
    assert_eq!(picture(&parse(found[0].as_bytes(), &Limits::default()).unwrap()), r#"(r("]>'"))"#);
    let doctype = "<!DOCTYPE a SYSTEM 'x>' [<!ATTLIST r k CDATA 'd'>]>";
    assert_eq!(texts(&format!("{doctype}<a><r/></a>"), "r"), [format!("{doctype}<r/>")]);
    let forbid = Limits { doctype: Doctype::Forbid, ..Limits::default() };
    let outcome: Vec<_> = Splitter::new("<!DOCTYPE a><a/>".as_bytes(), "r", forbid).collect();
    assert_eq!(outcome[0].as_ref().unwrap_err().kind, SplitterErrorKind::DoctypeForbidden);
}

#[test]
fn other_encodings_become_utf_8() {
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a><r>\xE9</r></a>";
    assert_eq!(records(latin, "r")[0].payload, "<r>é</r>".as_bytes());
    let wide: Vec<u8> = "\u{FEFF}<a><r>é\u{1F600}</r></a>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let found = records(&wide, "r");
    assert_eq!((found[0].offset, &*found[0].payload), (3, "<r>é\u{1F600}</r>".as_bytes()));
    let outcome: Vec<_> = Splitter::new(b"<a><r/>\xFF</a>".as_slice(), "r", Limits::default()).collect();
    assert_eq!(outcome.last().unwrap().as_ref().unwrap_err().kind, SplitterErrorKind::Encoding);
}

#[test]
fn a_record_too_large_does_not_stop_the_others() {
    let limits = Limits { document_bytes: 20, ..Limits::default() };
    let source = format!("<a><r>1</r><r>{}</r><r>3</r></a>", "x".repeat(300_000));
    let outcome: Vec<_> = Splitter::new(source.as_bytes(), "r", limits).collect();
    assert_eq!(outcome.len(), 3);
    assert_eq!(outcome[0].as_ref().unwrap().payload, b"<r>1</r>");
    let error = outcome[1].as_ref().unwrap_err();
    assert_eq!((error.kind, error.number, error.offset), (SplitterErrorKind::Limit, Some(2), 11));
    assert_eq!(outcome[2].as_ref().unwrap().number, 3);
}

#[test]
fn broken_sources_end_with_an_error() {
    for (source, count) in [
        ("", 0),
        ("<a><r/>", 1),
        ("<a><r>", 0),
        ("<a><r/></b>", 1),
        ("<a/><a/>", 0),
        ("x<a/>", 0),
        ("<a><!-- ", 0),
        ("<a><r", 0),
        ("<a></a></a>", 0),
        ("<a><!ELEMENT a></a>", 0),
        ("<a xmlns:p=u><r/></a>", 0),
    ] {
        let outcome: Vec<_> = Splitter::new(source.as_bytes(), "r", Limits::default()).collect();
        assert_eq!(outcome.len(), count + 1, "{source}");
        let error = outcome.last().unwrap().as_ref().unwrap_err();
        assert_eq!((error.kind, error.number), (SplitterErrorKind::NotWellFormed, None), "{source}: {error}");
    }
    let deep = "<a>".repeat(2000);
    let outcome: Vec<_> = Splitter::new(deep.as_bytes(), "r", Limits::default()).collect();
    assert_eq!(outcome[0].as_ref().unwrap_err().kind, SplitterErrorKind::Limit);
}

/// A source that never ends has records all the same.
#[test]
fn records_come_before_the_source_ends() {
    const START: &[u8] = b"<all>";
    const RECORD: &[u8] = b"<r>some text of a record</r>";
    struct Endless(usize);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            for byte in buffer.iter_mut() {
                *byte = START.get(self.0).copied().unwrap_or_else(|| RECORD[(self.0 - START.len()) % RECORD.len()]);
                self.0 += 1;
            }
            Ok(buffer.len())
        }
    }
    let mut count = 0;
    for record in Splitter::new(Endless(0), "r", Limits::default()).take(100_000) {
        assert_eq!(record.unwrap().payload, RECORD);
        count += 1;
    }
    assert_eq!(count, 100_000);
}
