//! Populations under change: merges in the background and on request lose nothing and bring nothing back.

use sardonyx_core::document::{Limits, Parser};
use sardonyx_core::index::bulk::{Registration, build};
use sardonyx_core::index::groups::largest_groups;
use sardonyx_core::index::memory::Memory;
use sardonyx_core::index::{Population, SegmentBuilder, Snapshot};
use sardonyx_core::matcher::Inverted;
use sardonyx_core::xpath::parser::StaticContext;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn builder(subscriptions: &[(String, String)]) -> SegmentBuilder {
    let registrations = subscriptions.iter().enumerate().map(|(row, (id, query))| Registration {
        row: row as u64,
        id,
        stream: None,
        query,
        context: StaticContext::default(),
    });
    let (builder, refused) = build(registrations).expect("fits");
    assert!(refused.is_empty());
    builder
}

fn numbered(numbers: std::ops::Range<u32>, price: u32) -> Vec<(String, String)> {
    numbers.map(|number| (format!("s{number}"), format!("/stock[price = {price}]"))).collect()
}

/// Each id with the constant of its filter.
fn content(population: &Population) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for part in &population.snapshot().segments {
        for subscription in part.live() {
            let constant = format!("{:?}", part.segment.view().filter(subscription).constants);
            let twice = all.insert(part.segment.ids().get(subscription).to_owned(), constant);
            assert_eq!(twice, None);
        }
    }
    all
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn merged_segments_are_prepared_before_matches_see_them() {
    let population = Population::default();
    let matcher = Inverted::default();
    population.prepare_by(matcher.preparation());
    let number_of = |position: usize| population.snapshot().segments[position].segment.number();
    // Large enough that merging them leaves time for documents.
    for number in 0..2 {
        population.register(builder(&numbered(number * 20_000..(number + 1) * 20_000, number))).expect("fits");
    }
    assert_eq!(population.snapshot().segments.len(), 1);
    let documents: Vec<String> =
        (0..64).map(|number| format!("<stock><price>{}</price></stock>", number % 6)).collect();
    let mut parser = Parser::new(Limits::default());
    let mut found = |snapshot: &Snapshot| -> Vec<usize> {
        let mut worker = matcher.worker(snapshot);
        let mut found = Vec::new();
        for document in &documents {
            let document = parser.parse(document.as_bytes()).expect("well-formed");
            found.push(matcher.match_document(&mut worker, snapshot, &document, None).len());
        }
        matcher.give_back(worker);
        found
    };
    let expected: Vec<usize> = (0..64).map(|number| if number % 6 < 2 { 20_000 } else { 0 }).collect();
    assert_eq!(found(&population.snapshot()), expected);
    let rows = matcher.statistics().rows.candidates;

    population.unregister(["s0"]);
    let before = number_of(0);
    population.compact().expect("fits");
    assert_ne!(number_of(0), before);
    // Caches of segments that are gone go with the next match.
    matcher.give_back(matcher.worker(&population.snapshot()));
    let prepared = matcher.statistics();
    assert!(prepared.path_states > 2, "{prepared:?}");
    assert!(prepared.rows.candidates < rows, "preparing counts as matching: {prepared:?}");
    let one_less = |number: usize| if number.is_multiple_of(6) { 19_999 } else { expected[number] };
    assert_eq!(found(&population.snapshot()), (0..64).map(one_less).collect::<Vec<_>>());
}

#[test]
fn caches_of_segments_that_are_gone_are_let_go_of_while_nobody_matches() {
    let population = Population::default();
    let matcher = Inverted::default();
    population.prepare_by(matcher.preparation());
    population.register(builder(&numbered(0..3000, 0))).expect("fits");
    let snapshot = population.snapshot();
    let document = Parser::new(Limits::default()).parse(b"<stock><price>0</price></stock>").expect("well-formed");
    for _ in 0..32 {
        let mut worker = matcher.worker(&snapshot);
        assert_eq!(matcher.match_document(&mut worker, &snapshot, &document, None).len(), 3000);
        matcher.give_back(worker);
    }
    drop(snapshot);
    let states = matcher.statistics().path_states;
    assert!(states > 2);
    for number in 1..40 {
        population.register(builder(&numbered(number * 3000..(number + 1) * 3000, number))).expect("fits");
    }
    let prepared = matcher.statistics().path_states;
    assert!(prepared > 0 && prepared <= 10 * states, "{prepared} states, {states} in one segment");
}

#[test]
fn large_segments_are_merged_in_the_background() {
    let population = Population::default();
    for number in 0..40 {
        population.register(builder(&numbered(number * 1500..(number + 1) * 1500, number))).expect("fits");
        assert!(population.snapshot().segments.len() <= 6);
    }
    assert_eq!(population.snapshot().generation, 40);
    let all = content(&population);
    assert_eq!(all.len(), 60_000);
    assert_eq!(all["s59999"], "[Number(39.0)]");
}

#[test]
fn segments_of_removed_subscriptions_are_written_again() {
    let population = Population::default();
    population.register(builder(&numbered(0..5000, 1))).expect("fits");
    let gone: Vec<String> = (0..4000).map(|number| format!("s{number}")).collect();
    assert!(population.unregister(gone.iter().map(String::as_str)).is_empty());
    eventually("no tombstones", || population.snapshot().segments.iter().all(|part| part.removed.count() == 0));
    assert_eq!(population.snapshot().segments[0].segment.subscription_count(), 1000);
    assert_eq!(population.snapshot().generation, 2);
}

#[test]
fn compacting_changes_nothing_but_the_segments() {
    let population = Population::default();
    population.register(builder(&numbered(0..3000, 1))).expect("fits");
    population.register(builder(&numbered(0..10, 2))).expect("fits");
    let (before, generation) = (content(&population), population.snapshot().generation);
    assert_eq!(population.compact().expect("fits"), generation);
    assert_eq!(content(&population), before);
    assert_eq!(population.snapshot().segments.len(), 1);
    assert_eq!(population.snapshot().segments[0].removed.count(), 0);
}

#[test]
fn an_emptied_population_has_no_segments() {
    let population = Population::default();
    population.register(builder(&numbered(0..10, 1))).expect("fits");
    let ids: Vec<String> = (0..10).map(|number| format!("s{number}")).collect();
    population.unregister(ids.iter().map(String::as_str));
    population.compact().expect("fits");
    assert!(population.snapshot().segments.is_empty());
}

/// Registers, replaces and unregisters while one thread compacts all the time and another merges what is due.
#[test]
fn changes_while_merging_are_kept() {
    let population = Population::default();
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                population.compact().expect("fits");
                rounds += 1;
            }
            rounds
        });
        let mut draw = 7u32;
        for round in 0..200 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (start, count) = (draw >> 8 & 0x1FFF, 1 + (draw >> 22));
            if round % 3 == 2 {
                let ids: Vec<String> = (start..start + 4 * count).map(|number| format!("s{number}")).collect();
                let missing = population.unregister(ids.iter().map(String::as_str));
                let absent: Vec<&String> = ids.iter().filter(|id| expected.remove(*id).is_none()).collect();
                assert_eq!(missing, absent);
            } else {
                let subscriptions = numbered(start..start + 3 * count, round);
                population.register(builder(&subscriptions)).expect("fits");
                expected.extend(subscriptions.into_iter().map(|(id, _)| (id, format!("[Number({round}.0)]"))));
            }
            assert_eq!(population.snapshot().len(), expected.len());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(compacting.join().expect("no panic") > 1);
    });
    assert_eq!(content(&population), expected);
}

#[test]
fn groups_are_signatures_by_size() {
    let population = Population::default();
    let mut subscriptions = numbered(0..20, 7);
    subscriptions.extend((20..30).map(|number| (format!("s{number}"), format!("/stock[symbol = 'S{number}']"))));
    subscriptions.push(("all".to_owned(), "not(/stock)".to_owned()));
    population.register(builder(&subscriptions)).expect("fits");
    let groups = largest_groups(&population.snapshot(), 10);
    let sizes: Vec<(u32, u32, u32)> =
        groups.iter().map(|group| (group.rows, group.subscriptions, group.constants)).collect();
    assert_eq!(sizes[0], (10, 10, 1));
    assert_eq!(
        {
            let mut rest = sizes[1..].to_vec();
            rest.sort_unstable();
            rest
        },
        [(1, 1, 0), (1, 20, 1)]
    );
    assert!(groups[0].query.contains("symbol") && groups[0].access[0].contains("/stock/symbol = "), "{groups:?}");
    assert!(groups.iter().any(|group| group.access.is_empty()));
    assert_eq!(largest_groups(&population.snapshot(), 1).len(), 1);
}

#[test]
fn every_byte_is_accounted_for() {
    let population = Population::default();
    assert_eq!(Memory::of(&population.snapshot()).images(), 0);
    population.register(builder(&numbered(0..2000, 1))).expect("fits");
    population.unregister(["s1"]);
    let snapshot = population.snapshot();
    let memory = Memory::of(&snapshot);
    let bytes: usize = snapshot.segments.iter().map(|part| part.segment.image().byte_count()).sum();
    assert_eq!(memory.sections.iter().map(|(_, bytes)| bytes).sum::<usize>() + memory.layout, bytes);
    assert_eq!((memory.images(), memory.heap, memory.mapped), (bytes, bytes, 0));
    assert!(memory.tombstones >= 4096);
    assert!(memory.sections.iter().any(|(name, bytes)| name == "trie_edges" && *bytes > 0));
    let file = std::env::temp_dir().join(format!("sardonyx-memory-{}.sdx", std::process::id()));
    population.save(&file, &[]).expect("saved");
    let opened = Memory::of(&Population::open(&file, true).expect("sound").snapshot());
    assert_eq!((opened.heap, opened.tombstones), (0, 0));
    assert_eq!(opened.mapped as u64, std::fs::metadata(&file).expect("there").len());
    std::fs::remove_file(&file).expect("removed");
}
