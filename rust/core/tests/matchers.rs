//! The inverted matcher answers as the naive one: on the YFilter suite and through changes of the population.

#![allow(clippy::print_stderr)] // says why a test was skipped

use sardonyx_core::document::{Limits, parse};
use sardonyx_core::index::bulk::{Registration, build};
use sardonyx_core::index::{Population, SegmentBuilder, Snapshot};
use sardonyx_core::matcher::{Inverted, Matches, Settings, naive};
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

/// Draws small numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// An element that may hold itself, several times over, with attributes and text.
    fn element(&mut self, depth: u32) -> String {
        let name = self.one(&["a", "b", "c"]);
        let mut text = format!("<{name}");
        for attribute in ["k", "l"] {
            if self.below(3) == 0 {
                text += &format!(" {attribute}='{}'", self.below(3));
            }
        }
        text += ">";
        for _ in 0..self.below(if depth < 5 { 5 } else { 1 }) {
            text += &if self.below(4) == 0 { self.below(3).to_string() } else { self.element(depth + 1) };
        }
        text + &format!("</{name}>")
    }

    fn steps(&mut self, count: u64, predicates: u32) -> String {
        let mut text = String::new();
        for number in 0..count {
            if number > 0 {
                text += self.one(&["/", "/", "/", "//"]);
            }
            text += self.one(&["a", "b", "c", "*", "a", "b"]);
            for _ in 0..self.below(2) {
                if predicates > 0 {
                    text += &format!("[{}]", self.condition(predicates - 1));
                }
            }
        }
        text
    }

    fn condition(&mut self, predicates: u32) -> String {
        let start = self.one(&["", "", "", ".//", "/a/", "//"]);
        let count = self.below(3);
        let path = format!("{start}{}", self.steps(1 + count, predicates));
        let value = self.below(3);
        match self.below(9) {
            0 => format!("{path} = '{value}'"),
            1 => format!("{path} = {value}"),
            2 => format!("{path}/@k = '{value}'"),
            3 => format!("@l = {value}"),
            4 => format!("{path}/text()"),
            5 => format!(". = '{value}'"),
            6 => format!("{path} and {}", self.condition(predicates.saturating_sub(1))),
            7 => format!("{path} >= {value}"),
            _ => path,
        }
    }

    fn query(&mut self) -> String {
        let start = self.one(&["/", "/", "//", "/*/", "/*//"]);
        let count = self.below(4);
        let path = format!("{start}{}", self.steps(1 + count, 2));
        match self.below(8) {
            0 => format!("{path}/@k"),
            1 => format!("{path}[@k]/@l"),
            2 => format!("{path}/text()"),
            3 => format!("{path} and {start}{}", self.steps(2, 1)),
            4 => format!("{path}[{}]", self.condition(1)),
            _ => path,
        }
    }
}

/// Elements that hold themselves and occur again and again: patterns have to meet in the right ones.
#[test]
fn patterns_meet_in_one_node() {
    let mut draw = Draw(7);
    let (mut found, mut counted) = (0, sardonyx_core::matcher::RowCounts::default());
    for _ in 0..60 {
        let queries: Vec<String> = (0..150).map(|_| draw.query()).collect();
        let numbered = queries.iter().enumerate().map(|(number, query)| (format!("s{number}"), &**query));
        let population = Population::default();
        population.register(builder(numbered)).expect("fits");
        // So few bytes that the path cache is emptied in the middle of documents.
        for path_cache_bytes in [1 << 20, 20_000, 2000] {
            let inverted = Inverted::new(Settings { path_cache_bytes, ..Settings::default() });
            for _ in 0..15 {
                found += check(&population, &inverted, &draw.element(0)).len();
            }
            counted += inverted.statistics().rows;
        }
    }
    assert!(found > 10_000 && counted.decided > counted.verified, "{found} {counted:?}");
}

/// What the open elements need does not fit into the path cache: it is not emptied at every node all the same.
#[test]
fn small_path_caches_have_room_for_open_elements() {
    let queries: Vec<String> =
        (0..3000).map(|number| format!("/r/a[b = '{}' and c{}]", number % 7, number / 7)).collect();
    let population = Population::default();
    let numbered = queries.iter().enumerate().map(|(number, query)| (format!("s{number}"), &**query));
    population.register(builder(numbered)).expect("fits");
    let inverted = Inverted::new(Settings { path_cache_bytes: 1000, ..Settings::default() });
    let element = |number: usize| format!("<a><c{number}/><b>{}</b></a>", number % 9);
    let text = format!("<r>{}</r>", (0..400).map(element).collect::<String>());
    assert!(check(&population, &inverted, &text).len() > 300);
    let clears = inverted.statistics().path_cache_clears;
    assert!((1..40).contains(&clears), "{clears} times empty, with 1,200 nodes");
}

/// Where there are very many nodes, rows are verified.
#[test]
fn large_documents_are_verified() {
    let population = Population::default();
    let queries = ["/r/a[b]/c", "/r/a[.//b]/c", "/r/a[b]/d", "/r[a/c]/a[b][c]", "//a[b = 7]/c"];
    let numbered = queries.iter().enumerate().map(|(number, query)| (format!("s{number}"), *query));
    population.register(builder(numbered)).expect("fits");
    let many = format!("<r>{}<a><c/></a><a><b>7</b></a></r>", "<a><b/></a><a><c/></a>".repeat(5000));
    assert_eq!(check(&population, &Inverted::default(), &many).len(), 0);
    let many = many.replace("</r>", "<a><b>7</b><c/></a></r>");
    assert_eq!(check(&population, &Inverted::default(), &many), ["s0", "s1", "s3", "s4"]);
}
