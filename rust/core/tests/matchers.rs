//! The inverted matcher answers as the naive one: on the YFilter suite and through changes of the population.

#![allow(clippy::print_stderr)] // says why a test was skipped

use sardonyx_core::document::{Limits, parse};
use sardonyx_core::index::bulk::{Registration, build};
use sardonyx_core::index::{Population, SegmentBuilder, Snapshot};
use sardonyx_core::matcher::{Inverted, Matches, naive};
use sardonyx_core::xpath::parser::{Parser, StaticContext};
use std::path::PathBuf;

fn shared(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")).join(path);
    path.exists().then_some(path)
}

fn builder<'a>(queries: impl IntoIterator<Item = (String, &'a str)>) -> SegmentBuilder {
    let mut builder = SegmentBuilder::default();
    let mut parser = Parser::default();
    for (id, query) in queries {
        let parsed = parser.parse(query, &StaticContext::default(), builder.symbols()).expect(query);
        builder.insert(&id, None, parsed.cells(), parsed.root, parsed.constants()).expect("fits");
    }
    builder
}

fn ids(snapshot: &Snapshot, matches: &Matches) -> Vec<String> {
    assert!(matches.failures.is_empty());
    let mut ids: Vec<String> = matches
        .iter()
        .map(|(segment, number)| snapshot.segments[segment as usize].segment.ids().get(number).to_owned())
        .collect();
    ids.sort_unstable();
    ids
}

fn check(population: &Population, inverted: &Inverted, text: &str) -> Vec<String> {
    let snapshot = population.snapshot();
    let document = parse(text.as_bytes(), &Limits::default()).expect("well-formed");
    let mut worker = inverted.worker(&snapshot);
    let found = ids(&snapshot, &inverted.match_document(&mut worker, &snapshot, &document, None));
    inverted.give_back(worker);
    assert_eq!(found, ids(&snapshot, &naive::match_document(&snapshot, &document, None, u64::MAX)), "{text}");
    found
}

#[test]
fn the_yfilter_suite() {
    let mut pairs = 0;
    for set in ["simple_paths", "simple_predicates", "nested_paths"] {
        let (Some(queries), Some(documents)) =
            (shared(&format!("data/yfilter-1.0/{set}/queries.txt")), shared("data/yfilter-1.0/docs-100"))
        else {
            eprintln!("skipped: the shared test data is not here");
            return;
        };
        let queries = std::fs::read_to_string(queries).expect("queries");
        let numbered = queries.lines().enumerate().map(|(line, query)| (format!("Q{}", line + 1), query));
        let population = Population::default();
        population.register(builder(numbered)).expect("fits");
        let inverted = Inverted::default();
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(documents).expect("documents").map(|entry| entry.expect("entry").path()).collect();
        files.sort();
        for (number, file) in files.iter().enumerate() {
            let text = std::fs::read_to_string(file).expect("document");
            let found = check(&population, &inverted, &text);
            let expected =
                shared(&format!("data/yfilter-1.0/{set}/expected/output{}.txt", number + 1)).expect("answers");
            let answers = std::fs::read_to_string(expected).expect("answers");
            let mut wanted: Vec<String> = answers
                .lines()
                .filter_map(|line| line.strip_suffix(':'))
                .filter(|line| {
                    line.strip_prefix('Q').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
                })
                .map(str::to_owned)
                .collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{set} {file:?}");
            pairs += queries.lines().count();
        }
    }
    // 200 + 1,000 + 1,000 queries on 100 documents.
    assert_eq!(pairs, 220_000);
}

#[test]
fn populations_change() {
    let population = Population::default();
    let inverted = Inverted::default();
    let document = "<r><a k='1'>x</a><a k='2'>y</a><b>7</b></r>";
    let queries = ["//a[@k='1']", "//a[@k=2]", "/r/b > 6", "/r/b < 6", "//a[contains(., 'x')]", "not(//c)", "//a[2]"];
    for (number, query) in queries.iter().enumerate() {
        population.register(builder([(format!("s{number}"), *query)])).expect("fits");
    }
    assert_eq!(check(&population, &inverted, document), ["s0", "s1", "s2", "s4", "s5", "s6"]);
    assert_eq!(population.unregister(["s0", "s3", "zz"]), ["zz"]);
    assert_eq!(check(&population, &inverted, document), ["s1", "s2", "s4", "s5", "s6"]);
    population.register(builder([("s1".to_owned(), "//nothing"), ("s0".to_owned(), "/r")])).expect("fits");
    assert_eq!(check(&population, &inverted, document), ["s0", "s2", "s4", "s5", "s6"]);
    let before = population.snapshot().generation;
    population.compact().expect("fits");
    assert!(population.snapshot().generation >= before);
    assert_eq!(check(&population, &inverted, document), ["s0", "s2", "s4", "s5", "s6"]);
    let file = std::env::temp_dir().join(format!("sardonyx-test-{}.sdx", std::process::id()));
    population.save(&file, &[]).expect("saved");
    let opened = Population::open(&file, true).expect("sound");
    assert_eq!(check(&opened, &inverted, document), ["s0", "s2", "s4", "s5", "s6"]);
    let mut bytes = std::fs::read(&file).expect("file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).expect("written");
    assert!(Population::open(&file, true).unwrap_err().to_string().contains("checksum"));
    std::fs::write(&file, &bytes[..middle]).expect("written");
    assert!(Population::open(&file, true).unwrap_err().to_string().contains("truncated"));
    std::fs::remove_file(&file).expect("removed");
}

#[test]
fn bulk_registration_keeps_order_and_names_what_it_refused() {
    let queries: Vec<String> = (0..5000)
        .map(|row| if row % 1000 == 7 { "//bad[".to_owned() } else { format!("/r/a[@k='{}']", row % 700) })
        .collect();
    let ids: Vec<String> = (0..5000).map(|row| format!("s{}", row % 4000)).collect();
    let context = StaticContext::default();
    let rows = queries.iter().zip(&ids).enumerate();
    let (builder, refused) =
        build(rows.map(|(row, (query, id))| Registration { row: row as u64, id, stream: None, query, context }))
            .expect("fits");
    assert_eq!(refused.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [7, 1007, 2007, 3007, 4007]);
    let population = Population::default();
    population.register(builder).expect("fits");
    // Rows 4000 to 4999 replace s0 to s999; of the refused ones, s7 keeps nothing and s1007 to s3007 were never there.
    let found = check(&population, &Inverted::default(), "<r><a k='5'/></r>");
    let mut wanted: Vec<String> = (0..4000)
        .filter(|id| id % 1000 != 7)
        .filter(|id| (if *id < 1000 { id + 4000 } else { *id }) % 700 == 5)
        .map(|id| format!("s{id}"))
        .collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}
