//! A state as bytes, and witnesses as bytes.
//!
//! A saved state names the parts of its population by what they are, so it can go on with another population: after a
//! restart, or with a later generation.

use super::names::{Name, Names};
use super::population::Population;
use super::publish::Message;
use super::state::State;
use super::unit::{Cell, NOT_POSTED, Part, Unit};
use super::witnesses::{Binding, RootText, UnitWitness, Witness};
use crate::index::bytes::{Malformed, Read, Reader, Writer};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"SDXJOIN1";

/// The witnesses of a document; definitions are named by their numbers in the population.
pub fn encode_witnesses(units: &[UnitWitness<'_>]) -> Vec<u8> {
    let mut writer = Writer::default();
    if units.is_empty() {
        return writer.bytes;
    }
    writer.length(units.len());
    for unit in units {
        writer.small(unit.source);
        writer.length(unit.bindings.len());
        for binding in &unit.bindings {
            [binding.definition, binding.parent, binding.node].into_iter().for_each(|number| writer.small(number));
        }
        writer.length(unit.values.len());
        for value in &unit.values {
            writer.small(value.operand);
            writer.small(value.binding);
            writer.block(value.value.as_bytes());
        }
        writer.option(unit.text.as_ref(), write_text);
    }
    writer.bytes
}

fn write_text(writer: &mut Writer, text: &RootText) {
    writer.bytes.push(u8::from(text.is_wrapped));
    writer.block(text.xml.as_bytes());
}

fn read_text(reader: &mut Reader<'_>) -> Read<RootText> {
    let is_wrapped = reader.take(1)?[0] != 0;
    Ok(RootText { xml: reader.text()?.into(), is_wrapped })
}

/// The witnesses that [`encode_witnesses`] wrote.
///
/// # Errors
/// For bytes that it did not write, or that name parts which the population does not have.
pub fn decode_witnesses<'b>(population: &Population, bytes: &'b [u8]) -> Read<Vec<UnitWitness<'b>>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(bytes);
    let parts = population.parts();
    reader.list(|reader| {
        let source = reader.small()?;
        let bindings = reader.list(|reader| {
            Ok(Binding { definition: reader.small()?, parent: reader.small()?, node: reader.small()? })
        })?;
        let values = reader.list(|reader| {
            let (operand, binding) = (reader.small()?, reader.small()?);
            Ok(Witness { operand, binding, value: Cow::Borrowed(reader.text()?) })
        })?;
        let text = reader.option(read_text)?;
        let is_known = parts.sources.get(source).is_some()
            && !bindings.is_empty()
            && bindings.iter().all(|binding| {
                parts.definitions.get(binding.definition).is_some() && (binding.parent as usize) < bindings.len()
            })
            && values
                .iter()
                .all(|value| parts.operands.get(value.operand).is_some() && (value.binding as usize) < bindings.len());
        if !is_known {
            return Err(Malformed("witnesses are of another generation of the index"));
        }
        Ok(UnitWitness { source, bindings, values, text })
    })
}

/// A message with witnesses as bytes.
///
/// # Errors
/// As [`decode_witnesses`].
pub fn message<'b>(
    population: &Population,
    number: u32,
    stream: Option<&'b str>,
    id: &'b str,
    time: i64,
    witnesses: &'b [u8],
) -> Read<Message<'b>> {
    Ok(Message { number, stream, id, time, witnesses: decode_witnesses(population, witnesses)? })
}

/// Numbers things in the order in which they are met.
struct Table<K> {
    numbers: HashMap<K, u32, FixedState>,
    order: Vec<K>,
}

impl<K: Copy + Eq + std::hash::Hash> Table<K> {
    fn new() -> Table<K> {
        Table { numbers: HashMap::default(), order: Vec::new() }
    }

    fn number(&mut self, key: K) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.order.push(key);
            self.order.len() as u32 - 1
        })
    }
}

/// A state and what it means, as bytes.
pub fn save(state: &State, population: &Population) -> Vec<u8> {
    let parts = population.parts();
    let mut sources = Table::new();
    let mut definitions = Table::new();
    let mut operands = Table::new();
    let mut documents = Table::new();
    let mut values = Table::new();
    let mut body = Writer::default();
    // A part that is gone has no name, and nothing that is left looks at it.
    let kept: Vec<(i64, &Unit)> = state.kept().filter(|(_, unit)| parts.sources.get(unit.source).is_some()).collect();
    body.length(kept.len());
    for (until, unit) in kept {
        body.small(sources.number(unit.source));
        body.large(unit.version);
        body.signed(unit.time);
        body.signed(until);
        body.length(unit.parts.len());
        for part in &unit.parts {
            body.small(documents.number(part.document));
            body.small(part.root);
            body.large(part.name);
            body.option(part.text.as_ref(), write_text);
        }
        body.length(unit.bindings.len());
        for binding in &unit.bindings {
            let known = parts.definitions.get(binding.definition).is_some();
            body.option(known.then(|| definitions.number(binding.definition)), Writer::small);
            body.small(binding.parent);
            body.small(binding.node);
        }
        let known: Vec<&Cell> = unit.cells.iter().filter(|cell| parts.operands.get(cell.operand).is_some()).collect();
        body.length(known.len());
        for cell in known {
            body.small(operands.number(cell.operand));
            body.small(cell.binding);
            body.small(values.number(cell.value));
        }
    }
    let mut out = Writer::default();
    out.bytes.extend(MAGIC);
    out.large(population.version());
    out.option(state.clock(), Writer::signed);
    out.length(population.len());
    for (_, subscription) in population.subscriptions().iter() {
        out.block(subscription.id.as_bytes());
        out.block(&subscription.identity());
        out.large(subscription.since);
    }
    out.length(state.seen().count());
    for (time, stream, id) in state.seen() {
        out.signed(time);
        out.option(stream, |writer, stream| writer.block(stream.as_bytes()));
        out.block(id.as_bytes());
    }
    let mut names = Names::new(population);
    let list = |out: &mut Writer, all: Vec<Name>| {
        out.length(all.len());
        all.iter().for_each(|name| out.bytes.extend(name));
    };
    let all = sources.order.iter().map(|id| names.source(*id)).collect();
    list(&mut out, all);
    let all = definitions.order.iter().map(|id| names.definition(*id)).collect();
    list(&mut out, all);
    let all = operands.order.iter().map(|id| names.operand(*id)).collect();
    list(&mut out, all);
    out.length(documents.order.len());
    for id in &documents.order {
        let entry = &state.documents[*id];
        out.option(entry.stream.as_deref(), |writer, stream| writer.block(stream.as_bytes()));
        out.block(entry.id.as_bytes());
        out.signed(entry.time);
    }
    out.length(values.order.len());
    values.order.iter().for_each(|id| out.block(state.values.key(*id)));
    out.bytes.extend(body.bytes);
    out.bytes
}

/// Puts what [`save`] wrote into an empty state. Subscriptions that were there when it was saved go on; others join
/// documents that come from now on.
///
/// # Errors
/// For bytes that it did not write.
pub fn restore(state: &mut State, population: &mut Population, bytes: &[u8]) -> Read<()> {
    let mut reader = Reader::new(bytes);
    if reader.take(8)? != MAGIC {
        return Err(Malformed("these bytes are no saved state of joins of this version"));
    }
    let version = reader.large()?;
    let clock = reader.option(Reader::signed)?;
    let known = reader.list(|reader| {
        let id = reader.text()?;
        Ok((id, reader.block()?, reader.large()?))
    })?;
    let seen = reader.list(|reader| {
        let time = reader.signed()?;
        let stream = reader.option(Reader::text)?;
        Ok((time, stream.map(Arc::from), Arc::from(reader.text()?)))
    })?;
    let since: HashMap<&str, (&[u8], u64), FixedState> =
        known.into_iter().map(|(id, identity, since)| (id, (identity, since))).collect();
    population.adopt(version, |subscription| {
        let (identity, since) = since.get(&*subscription.id)?;
        (*identity == subscription.identity().as_slice()).then_some(*since)
    });
    let mut names = Names::new(population);
    let parts = population.parts();
    let name = |reader: &mut Reader<'_>| -> Read<Name> { reader.take(32)?.try_into().map_err(|_| Malformed("a name")) };
    let by_name: HashMap<Name, u32, FixedState> = parts.sources.iter().map(|(id, _)| (names.source(id), id)).collect();
    let sources = reader.list(|reader| Ok(by_name.get(&name(reader)?).copied()))?;
    let by_name: HashMap<Name, u32, FixedState> =
        parts.definitions.iter().map(|(id, _)| (names.definition(id), id)).collect();
    let definitions = reader.list(|reader| Ok(by_name.get(&name(reader)?).copied()))?;
    let by_name: HashMap<Name, u32, FixedState> =
        parts.operands.iter().map(|(id, _)| (names.operand(id), id)).collect();
    let operands = reader.list(|reader| Ok(by_name.get(&name(reader)?).copied()))?;
    let documents = reader.list(|reader| {
        let stream: Option<Arc<str>> = reader.option(|reader| reader.text().map(Arc::from))?;
        Ok((stream, Arc::<str>::from(reader.text()?), reader.signed()?))
    })?;
    let values = reader.list(Reader::block)?;
    let at = |table: &[Option<u32>], number: u32| -> Read<Option<u32>> {
        table.get(number as usize).copied().ok_or(Malformed("a number leads nowhere"))
    };
    state.start(clock, seen);
    let mut entered: Vec<Option<u32>> = vec![None; documents.len()];
    for _ in 0..reader.length()? {
        let source = reader.small()?;
        let source = at(&sources, source)?;
        let (version, time, until) = (reader.large()?, reader.signed()?, reader.signed()?);
        let mut unit_parts: SmallVec<[Part; 1]> = SmallVec::new();
        for _ in 0..reader.length()? {
            let (document, root, name) = (reader.small()?, reader.small()?, reader.large()?);
            let text = reader.option(read_text)?;
            let entry = entered.get_mut(document as usize).ok_or(Malformed("a number leads nowhere"))?;
            let document = *entry.get_or_insert_with(|| {
                let (stream, id, time) = &documents[document as usize];
                state.enter_named(stream.clone(), id.clone(), *time)
            });
            unit_parts.push(Part { document, root, text, name });
        }
        let bindings = reader.list(|reader| {
            let definition = match reader.option(Reader::small)? {
                Some(number) => at(&definitions, number)?,
                None => None,
            };
            Ok(Binding { definition: definition.unwrap_or(u32::MAX), parent: reader.small()?, node: reader.small()? })
        })?;
        let mut cells = Vec::new();
        for _ in 0..reader.length()? {
            let (operand, binding, value) = (reader.small()?, reader.small()?, reader.small()?);
            let key = *values.get(value as usize).ok_or(Malformed("a number leads nowhere"))?;
            if let Some(operand) = at(&operands, operand)?
                && source.is_some()
            {
                cells.push(Cell { operand, binding, value: state.values.acquire_key(key), place: NOT_POSTED });
            }
        }
        let is_sound = !bindings.is_empty()
            && !unit_parts.is_empty()
            && bindings.iter().all(|binding| (binding.parent as usize) < bindings.len())
            && cells.iter().all(|cell| (cell.binding as usize) < bindings.len());
        if !is_sound {
            return Err(Malformed("a unit refers to nothing"));
        }
        if let Some(source) = source {
            let made = state.restored(population, source, version, time, unit_parts, bindings, cells);
            state.keep_until(population, made, until);
        }
    }
    for document in entered.into_iter().flatten() {
        state.leave(document);
    }
    Ok(())
}
