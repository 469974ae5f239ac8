//! Times matching: `matching QUERIES DOCUMENTS [PASSES] [MATCHER]`, one query a line, a folder of XML files
//! or a file with one document a line.
//!
//! `MATCHER` is `inverted`, `naive`, or `xpush` with its options after commas: `xpush,no-top-down,early,training,`
//! `precompute,mib=SIZE,order=ORDER`, where `ORDER` is a file with one chain of sibling names a line.
#![allow(clippy::print_stdout)]

use sardonyx_core::document::{Limits, Parser as Reader};
use sardonyx_core::index::Population;
use sardonyx_core::index::bulk::{Registration, build};
use sardonyx_core::matcher::{Inverted, Matcher, Matchers, SiblingOrder, XPush, XPushSettings};
use sardonyx_core::xpath::parser::StaticContext;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let queries = std::fs::read_to_string(arguments.next().ok_or("which file of queries?")?)?;
    let folder = arguments.next().ok_or("which folder of documents?")?;
    let passes: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let (matcher, settings) = matcher(&arguments.next().unwrap_or_else(|| "inverted".into()))?;

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
    for (name, bytes) in snapshot.segments.iter().flat_map(|part| part.segment.image().sizes()) {
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
    let megabytes = documents.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    let matchers = Matchers { inverted: Inverted::default(), xpush: XPush::new(settings) };
    let mut reader = Reader::new(Limits::default());
    let began = Instant::now();
    for document in &documents {
        reader.parse(document)?;
    }
    println!(
        "parsing alone: {:.3} ms/document, {:.1} MB/s",
        began.elapsed().as_secs_f64() * 1e3 / documents.len() as f64,
        megabytes / began.elapsed().as_secs_f64()
    );
    let began = Instant::now();
    matchers.give_back(matchers.worker(matcher, &snapshot));
    println!("first worker: {:.2?}", began.elapsed());
    let (mut lookups, mut hits) = (0, 0);
    for pass in 0..passes {
        let mut worker = matchers.worker(matcher, &snapshot);
        let began = Instant::now();
        let mut matches = 0;
        for document in &documents {
            let tree = reader.parse(document)?;
            matches += matchers.match_document(&mut worker, &snapshot, &tree, None).len();
        }
        let seconds = began.elapsed().as_secs_f64();
        matchers.give_back(worker);
        println!(
            "pass {pass}: {:.3} ms/document, {:.1} MB/s, {} matches each",
            seconds * 1e3 / documents.len() as f64,
            megabytes / seconds,
            matches / documents.len()
        );
        if matcher == Matcher::XPush {
            let now = matchers.xpush.statistics();
            println!(
                "  {} states of {:.1} edges, {} top-down, {} of values, {} transitions, {:.2} % hits, {} MB, {} clearings",
                now.states,
                now.state_members as f64 / now.states as f64,
                now.top_down_states,
                now.value_states,
                now.transitions,
                (now.hits - hits) as f64 * 100.0 / (now.lookups - lookups) as f64,
                now.store_bytes >> 20,
                now.clears
            );
            (lookups, hits) = (now.lookups, now.hits);
        }
    }
    println!("{:?}\n{:?}", matchers.inverted.statistics(), matchers.xpush.statistics());
    Ok(())
}

fn matcher(text: &str) -> Result<(Matcher, XPushSettings), Box<dyn std::error::Error>> {
    let mut options = text.split(',');
    let matcher = match options.next() {
        Some("inverted") => Matcher::Inverted,
        Some("naive") => Matcher::Naive,
        Some("xpush") => Matcher::XPush,
        other => return Err(format!("no matcher {other:?}").into()),
    };
    let mut settings = XPushSettings::default();
    for option in options {
        match option.split_once('=') {
            Some(("order", file)) => {
                let chains = std::fs::read_to_string(file)?;
                let chains = chains.lines().map(|line| line.split_whitespace().collect());
                settings.order = Some(SiblingOrder::new(chains));
            }
            Some(("mib", size)) => settings.store_bytes = size.parse::<usize>()? << 20,
            _ => match option {
                "no-top-down" => settings.top_down = false,
                "early" => settings.early = true,
                "training" => settings.training = true,
                "precompute" => settings.precompute_values = true,
                other => return Err(format!("no option {other:?}").into()),
            },
        }
    }
    Ok((matcher, settings))
}
