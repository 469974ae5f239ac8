//! Measures the ways to read documents that were weighed for the decision on the XML parser.
//!
//! `cargo run --release -p sardonyx-core --example parser_choice -- FOLDER...` reads every `.xml` file below the
//! folders that all contestants accept and prints, per folder, MB/s of input.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quick_xml::Reader;
use quick_xml::events::Event;
use sardonyx_core::document::{Limits, Parser};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "xml") {
            found.push(path);
        }
    }
}

/// The sum, over the documents, of the shortest of 15 rounds each: a busy machine disturbs a whole round nearly
/// always, one document of a few microseconds seldom in every round.
fn best(documents: &[String], mut read: impl FnMut(&str) -> usize) -> Duration {
    let mut shortest = vec![Duration::MAX; documents.len()];
    for _ in 0..15 {
        for (text, shortest) in documents.iter().zip(&mut shortest) {
            let start = Instant::now();
            assert!(read(text) > 0);
            *shortest = start.elapsed().min(*shortest);
        }
    }
    shortest.iter().sum()
}

fn events(text: &str) -> usize {
    let mut reader = Reader::from_str(text);
    let mut count = 0;
    while !matches!(reader.read_event(), Ok(Event::Eof) | Err(_)) {
        count += 1;
    }
    count
}

fn roxmltree(text: &str) -> Option<usize> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(text, options).ok().map(|document| document.descendants().count())
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "folder documents kB_each quick_xml_events roxmltree ours ours_us_each")?;
    let mut parser = Parser::new(Limits::default());
    for folder in std::env::args().skip(1) {
        let mut paths = Vec::new();
        files(Path::new(&folder), &mut paths);
        paths.sort();
        let documents: Vec<String> = paths
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .filter(|text| parser.parse_str(text).is_ok() && roxmltree(text).is_some())
            .collect();
        let bytes: usize = documents.iter().map(String::len).sum();
        if bytes == 0 {
            continue;
        }
        let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
        let ours = best(&documents, |text| parser.parse(text.as_bytes()).map_or(0, |d| d.len()));
        writeln!(
            out,
            "{folder} {} {:.1} {:.0} {:.0} {:.0} {:.1}",
            documents.len(),
            bytes as f64 / 1e3 / documents.len() as f64,
            rate(best(&documents, events)),
            rate(best(&documents, |text| roxmltree(text).unwrap_or_default())),
            rate(ours),
            ours.as_secs_f64() * 1e6 / documents.len() as f64
        )?;
    }
    Ok(())
}
