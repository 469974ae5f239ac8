//! Times transformations: `transforming QUERIES DOCUMENTS [PASSES] [STRATEGY]`, one query a line, a folder of XML files.
//!
//! Registers them in parts parsed by two threads, as the extension does, then lists groups and writes text.
#![allow(clippy::print_stdout)]

use sardonyx_core::document::{Document, Limits, Parser as Reader};
use sardonyx_core::transform::execute::Worker;
use sardonyx_core::transform::population::{Population, Registration, Strategy};
use sardonyx_core::transform::results::{Form, profile};
use sardonyx_core::xquery::error::XQueryError;
use sardonyx_core::xquery::parser::{StaticContext, parse};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;
/// A failure of a thread.
type Failed = String;

/// Transformations parsed and registered at a time, and threads that parse.
const PART: usize = 2_000;
const THREADS: usize = 2;
const COST_LIMIT: u64 = 1_000_000_000;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let queries = std::fs::read_to_string(arguments.next().ok_or("which file of queries?")?)?;
    let folder = arguments.next().ok_or("which folder of documents?")?;
    let passes: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let named = arguments.next().unwrap_or_else(|| "shared".into());
    let strategy = Strategy::ALL.into_iter().find(|strategy| strategy.name() == named).ok_or("which strategy?")?;

    let ids: Vec<String> = (1..=queries.lines().count()).map(|line| line.to_string()).collect();
    let rows: Vec<(&str, &str)> = ids.iter().map(String::as_str).zip(queries.lines()).collect();
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
        fastest.parsing = fastest.parsing.min(times.parsing);
        fastest.compiling = fastest.compiling.min(times.compiling);
        fastest.whole = fastest.whole.min(times.whole);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count;
    println!(
        "registered in {:.2?}, {:.0}/s; processor time each: parsing {:.2} us, compiling {:.2} us",
        fastest.whole,
        count / fastest.whole.as_secs_f64(),
        each(fastest.parsing),
        each(fastest.compiling)
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
#[derive(Debug, Default)]
struct Times {
    /// Processor time of the threads that parse.
    parsing: Duration,
    /// Processor time of compiling.
    compiling: Duration,
    /// Wall-clock time.
    whole: Duration,
}

/// Parses and registers.
fn register(rows: &[(&str, &str)], strategy: Strategy) -> Result<(Population, Times), Failure> {
    let mut population = Population::new(strategy, None);
    let mut times = Times::default();
    let began = Instant::now();
    for part in rows.chunks(PART) {
        let read = |rows: &[(&str, &str)]| -> Result<_, Failed> {
            let parsed = rows.iter().map(registration).collect::<Result<Vec<_>, _>>();
            Ok((parsed.map_err(|error| error.to_string())?, processor_time()?))
        };
        let parts: Vec<_> = std::thread::scope(|scope| {
            let rows = part.chunks(part.len().div_ceil(THREADS));
            let threads: Vec<_> = rows.map(|rows| scope.spawn(move || read(rows))).collect();
            let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned()));
            joined.map(|outcome| outcome?).collect::<Result<_, _>>()
        })?;
        let started = processor_time()?;
        for (registrations, time) in parts {
            times.parsing += time;
            population.register(registrations);
        }
        times.compiling += processor_time()? - started;
    }
    times.whole = began.elapsed();
    Ok((population, times))
}

/// Processor time of this thread.
fn processor_time() -> Result<Duration, Failed> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").map_err(|error| error.to_string())?;
    let first = text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    first.map(Duration::from_nanos).ok_or_else(|| "no processor time".to_owned())
}

fn registration((id, query): &(&str, &str)) -> Result<Registration, XQueryError> {
    Ok(Registration {
        id: (*id).into(),
        query: (*query).into(),
        namespaces: [].into(),
        stream: None,
        notify_empty: false,
        module: parse(query, &StaticContext::default())?,
    })
}

fn resident_bytes() -> Result<usize, Failure> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split(' ').nth(1).ok_or("no second number")?.parse::<usize>()? * 4096)
}
