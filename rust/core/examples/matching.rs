//! Times matching: `matching QUERIES DOCUMENTS [PASSES]`, one query a line, a folder of XML files or a file with one
//! document a line.
#![allow(clippy::print_stdout)]

use sardonyx_core::document::{Limits, Parser as Reader};
use sardonyx_core::index::Population;
use sardonyx_core::index::bulk::{Registration, build};
use sardonyx_core::matcher::Inverted;
use sardonyx_core::xpath::parser::StaticContext;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let queries = std::fs::read_to_string(arguments.next().ok_or("which file of queries?")?)?;
    let folder = arguments.next().ok_or("which folder of documents?")?;
    let passes: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;

    let ids: Vec<String> = (1..=queries.lines().count()).map(|line| line.to_string()).collect();
    let context = StaticContext::default();
    let rows = queries.lines().zip(&ids).enumerate();
    let registrations: Vec<Registration<'_>> =
        rows.map(|(row, (query, id))| Registration { row: row as u64, id, stream: None, query, context }).collect();
    let began = Instant::now();
    let (builder, refused) = build(registrations.into_iter())?;
    if let Some((row, error)) = refused.first() {
        return Err(format!("line {}: {error}", row + 1).into());
    }
    let parsed = began.elapsed();
    let count = builder.len();
    let population = Population::default();
    population.register(builder)?;
    let whole = began.elapsed();
    let snapshot = population.snapshot();
    let bytes: usize = snapshot.segments.iter().map(|part| part.segment.image().byte_count()).sum();
    println!(
        "{count} subscriptions: parsed in {parsed:.2?}, registered in {whole:.2?} ({:.0}/s), {:.0} bytes each",
        count as f64 / whole.as_secs_f64(),
        bytes as f64 / count as f64
    );
    for (name, bytes) in snapshot.segments[0].segment.image().sizes() {
        println!("  {name:<20} {:>8.1} bytes each", bytes as f64 / count as f64);
    }

    let mut documents = Vec::new();
    if std::fs::metadata(&folder)?.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            documents.push(std::fs::read(entry?.path())?);
        }
    } else {
        documents.extend(std::fs::read_to_string(folder)?.lines().map(|line| line.as_bytes().to_vec()));
    }
    let inverted = Inverted::default();
    let mut reader = Reader::new(Limits::default());
    let began = Instant::now();
    for document in &documents {
        reader.parse(document)?;
    }
    println!("parsing alone: {:.3} ms/document", began.elapsed().as_secs_f64() * 1e3 / documents.len() as f64);
    for pass in 0..passes {
        let mut worker = inverted.worker(&snapshot);
        let began = Instant::now();
        let mut matches = 0;
        for document in &documents {
            let tree = reader.parse(document)?;
            matches += inverted.match_document(&mut worker, &snapshot, &tree, None).len();
        }
        let each = began.elapsed().as_secs_f64() * 1e3 / documents.len() as f64;
        inverted.give_back(worker);
        let caches = inverted.statistics();
        println!(
            "pass {pass}: {each:.3} ms/document, {} matches each, {} states, {} MB of caches, {} clearings",
            matches / documents.len(),
            caches.path_states,
            caches.cache_bytes >> 20,
            caches.path_cache_clears
        );
    }
    println!("{:?} in {passes} passes over {} documents", inverted.statistics().rows, documents.len());
    Ok(())
}
