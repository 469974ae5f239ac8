//! Documents in many encodings; the expected texts were made with Python's codecs.

mod support;

use sardonyx_core::document::{Document, DocumentError, DocumentErrorKind, Limits, parse};
use support::{files, shared};

const SAMPLES: [(&str, &str, &str); 20] = [
    ("iso-8859-2", "a3f364bc20be", "Łódź ž"),
    ("iso-8859-5", "bfe0d8d2d5e2", "Привет"),
    ("iso-8859-7", "c1e8deede1", "Αθήνα"),
    ("iso-8859-9", "dd7374616e62756c20f0", "İstanbul ğ"),
    ("iso-8859-15", "313020a420bc", "10 € Œ"),
    ("windows-1250", "a3f3649f209e", "Łódź ž"),
    ("windows-1251", "cff0e8e2e5f2", "Привет"),
    ("windows-1252", "938094208c", "“€” Œ"),
    ("windows-1253", "c1e8deede1", "Αθήνα"),
    ("windows-1257", "de696f67617320eb", "Žiogas ė"),
    ("koi8-r", "f0d2c9d7c5d4", "Привет"),
    ("koi8-u", "ebc9a7d720a7", "Київ ї"),
    ("Shift_JIS", "93fa967b8cea20b6c5", "日本語 ｶﾅ"),
    ("EUC-JP", "c6fccbdcb8ec20a5aba5ca", "日本語 カナ"),
    ("ISO-2022-JP", "1b2442467c4b5c386c1b2842", "日本語"),
    ("EUC-KR", "c7d1b1b9beee", "한국어"),
    ("GB2312", "d6d0cec4", "中文"),
    ("GBK", "d6d0cec420e946", "中文 镕"),
    ("GB18030", "d6d0cec4209532823620a8a6", "中文 𠀀 é"),
    ("Big5", "a4a4a4e520a672", "中文 字"),
];

fn read(input: &[u8]) -> Result<Document, DocumentError> {
    parse(input, &Limits::default())
}

fn declared(label: &str, text: &[u8]) -> Vec<u8> {
    [format!("<?xml version='1.0' encoding='{label}'?><a>").as_bytes(), text, b"</a>"].concat()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn utf_16(text: &str, big: bool) -> Vec<u8> {
    text.encode_utf16().flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

#[test]
fn declared_encodings_are_decoded() {
    for (label, hex, text) in SAMPLES {
        let document = read(&declared(label, &bytes(hex))).unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(document.string_value(0), text, "{label}");
    }
}

#[test]
fn latin_1_and_ascii_mean_what_they_say() {
    let every: Vec<u8> = (0xA0..=0xFF).chain(0x80..=0x9F).collect();
    let expected: String = every.iter().map(|byte| *byte as char).collect();
    for label in ["ISO-8859-1", "latin1", "L1"] {
        assert_eq!(read(&declared(label, &every)).unwrap().string_value(0), expected, "{label}");
    }
    assert_eq!(read(&declared("US-ASCII", b"x")).unwrap().string_value(0), "x");
    let error = read(&declared("US-ASCII", b"x\xE9")).unwrap_err();
    assert_eq!((error.kind, error.line, error.column), (DocumentErrorKind::Encoding, 1, 46));
}

#[test]
fn utf_16_is_found_by_its_mark_or_its_first_characters() {
    let text = "<?xml version='1.0' encoding='UTF-16'?><a>é\u{1F600}</a>";
    for big in [false, true] {
        for mark in ["\u{FEFF}", ""] {
            let document = read(&utf_16(&format!("{mark}{text}"), big)).unwrap();
            assert_eq!(document.string_value(0), "é\u{1F600}");
        }
        let named = text.replace("UTF-16", if big { "utf-16be" } else { "utf-16le" });
        assert!(read(&utf_16(&format!("\u{FEFF}{named}"), big)).is_ok());
        assert_eq!(read(&utf_16(&format!("\u{FEFF}{named}"), !big)).unwrap_err().kind, DocumentErrorKind::Encoding);
    }
}

#[test]
fn contradictions_and_unknown_encodings_are_refused() {
    let mark = |label: &str| [b"\xEF\xBB\xBF".as_slice(), &declared(label, b"")].concat();
    assert!(read(&mark("UTF-8")).is_ok());
    for input in [
        mark("ISO-8859-1"),
        mark("UTF-16"),
        declared("UTF-16", b""),
        declared("UTF-7", b""),
        declared("x-nothing", b""),
        declared("hz-gb-2312", b""),
        utf_16("\u{FEFF}<?xml version='1.0' encoding='UTF-8'?><a/>", false),
        b"\0\0\xFE\xFF\0\0\0<\0\0\0a\0\0\0/\0\0\0>".to_vec(),
        b"<\0\0\0a\0\0\0/\0\0\0>\0\0\0".to_vec(),
        b"\x4C\x6F\xA7\x94\x93".to_vec(),
    ] {
        let error = read(&input).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Encoding, "{}: {error}", String::from_utf8_lossy(&input));
        assert_eq!((error.line, error.column), (1, 1));
    }
}

#[test]
fn ill_formed_sequences_are_errors_with_a_position() {
    for (input, column) in [
        (b"<r>\xE9</r>".to_vec(), 4),
        (b"<r>\xED\xA0\x80</r>".to_vec(), 4),
        (b"<r>\xC0\xBC/r>".to_vec(), 4),
        (b"<r>\xE2\x82</r>".to_vec(), 4),
        (b"<r>\xF4\x90\x80\x80</r>".to_vec(), 4),
        (declared("Shift_JIS", b"\x93\xFA\x81"), 47),
        (declared("EUC-KR", b"\xFF"), 43),
        (utf_16("\u{FEFF}<r>", false).into_iter().chain([0, 0xD8, b'<', 0]).collect(), 4),
        (utf_16("\u{FEFF}<r/>", false).into_iter().chain([b' ']).collect(), 5),
    ] {
        let error = read(&input).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Encoding, "{error}");
        assert_eq!((error.line, error.column), (1, column), "{}: {error}", String::from_utf8_lossy(&input));
    }
}

/// The documents use every letter of an encoding, in places where no letter may be: attribute values that are
/// well-formed come first, so that the document cut after them can be read.
#[test]
fn suite_documents_are_decoded() {
    let Some(folder) = shared("data/suites/encodings-quick-xml") else { return };
    let paths = files(&folder, ".xml");
    assert!(paths.len() >= 28);
    for path in paths {
        let input = std::fs::read(&path).unwrap();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("utf8")) {
            assert!(read(&input).is_ok(), "{}", path.display());
            continue;
        }
        let error = read(&input).err().unwrap_or_else(|| panic!("{} is not well-formed", path.display()));
        assert_eq!(error.kind, DocumentErrorKind::NotWellFormed, "{}: {error}", path.display());
        let last = input.windows(2).rposition(|pair| pair == b"'\n").unwrap_or(0);
        let cut = input.windows(8).position(|part| part.starts_with(b"'\n      :")).unwrap_or(last);
        let document = read(&[&input[..=cut], b"/>"].concat()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let root = document.root_element();
        let values: Vec<&str> = document.attributes(root).map(|at| document.string_value(at)).collect();
        assert_eq!(values.len(), 2, "{}", path.display());
        assert!(values.iter().all(|value| value.contains('~')), "{}", path.display());
    }
}
