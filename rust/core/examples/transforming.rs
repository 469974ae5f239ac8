//! Times transformations: `transforming QUERIES DOCUMENTS [PASSES] [STRATEGY]`, one query a line, a folder of XML files.
//!
//! Registers them as the extension does, then lists groups and writes text.
#![allow(clippy::print_stdout)]

use sardonyx_core::document::{Document, Limits, Parser as Reader};
use sardonyx_core::transform::bulk::{Unparsed, parse_all};
use sardonyx_core::transform::execute::Worker;
use sardonyx_core::transform::population::{Population, Strategy};
use sardonyx_core::transform::results::{Form, profile};
use sardonyx_core::xpath::parser::QueryLimits;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// Transformations registered at a time.
const PART: usize = 2_000;
const COST_LIMIT: u64 = 1_000_000_000;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let queries = std::fs::read_to_string(arguments.next().ok_or("which file of queries?")?)?;
    let folder = arguments.next().ok_or("which folder of documents?")?;
    let passes: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let named = arguments.next().unwrap_or_else(|| "shared".into());
    let strategy = Strategy::ALL.into_iter().find(|strategy| strategy.name() == named).ok_or("which strategy?")?;

    let ids: Vec<String> = (1..=queries.lines().count()).map(|line| line.to_string()).collect();
    let numbered = ids.iter().map(String::as_str).zip(queries.lines()).zip(0..);
    let made = |((id, query), row)| Unparsed { row, id, query, namespaces: &[], stream: None, notify_empty: false };
    let rows: Vec<Unparsed<'_>> = numbered.map(made).collect();
    let before = resident_bytes()?;
    let (population, times) = register(&rows, strategy)?;
    let count = population.len() as f64;
    println!(
        "{count} transformations, {} plans, {} streams, {} paths, {} conditions, the process grew by {:.0} bytes each",
        population.plan_count(),
        population.operators().streams().len(),
        population.operators().paths().len(),
        population.operators().conditions().len(),
        (resident_bytes()? - before) as f64 / count
    );
    let mut fastest = times;
    for _ in 1..passes {
        let (_, times) = register(&rows, strategy)?;
        fastest.own = fastest.own.min(times.own);
        fastest.whole = fastest.whole.min(times.whole);
    }
    println!(
        "registered in {:.2?}, {:.0}/s; processor time of one thread {:.2} us each",
        fastest.whole,
        count / fastest.whole.as_secs_f64(),
        fastest.own.as_secs_f64() * 1e6 / count
    );

    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let texts: Vec<Vec<u8>> = files.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    let mut reader = Reader::new(Limits::default());
    let documents: Vec<Document> = texts.iter().map(|text| reader.parse(text)).collect::<Result<_, _>>()?;
    let documents: Vec<&Document> = documents.iter().collect();
    let mut worker = Worker::default();
    for form in [Form::Groups, Form::Text] {
        profile(&population, &mut worker, &documents, form, COST_LIMIT);
        let mut best = f64::INFINITY;
        let each_ms = |time: Duration| time.as_secs_f64() * 1e3 / documents.len() as f64;
        for pass in 0..passes {
            let began = processor_time()?;
            let measured = profile(&population, &mut worker, &documents, form, COST_LIMIT);
            best = best.min(each_ms(processor_time()? - began));
            let each = |number: u64| number as f64 / documents.len() as f64;
            if pass == 0 {
                println!(
                    "{form:?}, for a document: {:.1} candidates, {:.2} results, {:.2} groups, {:.0} bytes, {} failures",
                    each(measured.candidates),
                    each(measured.results),
                    each(measured.groups),
                    each(measured.text_bytes),
                    measured.failures
                );
            }
        }
        println!("{form:?}: {best:.3} ms/document");
    }
    println!("the process grew by {:.0} bytes each in all", (resident_bytes()? - before) as f64 / count);
    Ok(())
}

/// What registering took.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Processor time of this thread, which compiles and helps with parsing.
    own: Duration,
    /// Wall-clock time.
    whole: Duration,
}

/// Parses and registers.
fn register(rows: &[Unparsed<'_>], strategy: Strategy) -> Result<(Population, Times), Failure> {
    let mut population = Population::new(strategy, None);
    let (began, started) = (Instant::now(), processor_time()?);
    let mut refused = Vec::new();
    parse_all(rows, QueryLimits::default(), |parsed| {
        let mut parsed = parsed.peekable();
        while parsed.peek().is_some() {
            let part = parsed.by_ref().take(PART);
            population.register(part.filter_map(|parsed| parsed.map_err(|error| refused.push(error)).ok()));
        }
    });
    if let Some((row, _, error)) = refused.first() {
        return Err(format!("line {}: {error}", row + 1).into());
    }
    let times = Times { own: processor_time()? - started, whole: began.elapsed() };
    Ok((population, times))
}

/// Processor time of this thread.
fn processor_time() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    first.map(Duration::from_nanos).ok_or_else(|| "no processor time".into())
}

fn resident_bytes() -> Result<usize, Failure> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split(' ').nth(1).ok_or("no second number")?.parse::<usize>()? * 4096)
}
