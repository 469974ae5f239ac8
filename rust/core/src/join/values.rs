//! The values in the state, each once, with the units that have it.
//!
//! This is what the paper materialises by string value (SIGMOD 2007, section 5): everything that can join with a value
//! hangs from it. It is kept for all values in the state, since it is the state.

use super::parts::OperandId;
use super::slab::Slab;
use blake2::{Blake2b, Digest, digest::consts::U32};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::{BuildHasher, Hasher};

/// Number of a value.
pub type ValueId = u32;
/// Number of a unit.
pub type UnitId = u32;

/// Longer values are kept as their hash: 256 bits of BLAKE2b, for which nobody can find two equal ones.
const LONG: usize = 64;
/// What an entry takes besides its text and its postings: itself, its place in the table, the allocations.
const ENTRY_BYTES: usize = size_of::<Entry>() + 16;

/// A unit that has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// As which operand.
    pub operand: OperandId,
    /// The unit.
    pub unit: UnitId,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    key: SmallVec<[u8; 24]>,
    users: u32,
    postings: SmallVec<[Posting; 2]>,
}

/// The values.
#[derive(Debug, Default)]
pub struct Values {
    table: HashTable<ValueId>,
    entries: Slab<Entry>,
    hasher: RandomState,
    bytes: usize,
}

/// A value's key: its text behind a zero, or its hash behind a one.
fn key_of(value: &str) -> SmallVec<[u8; 24]> {
    let mut key = SmallVec::new();
    if value.len() <= LONG {
        key.push(0);
        key.extend_from_slice(value.as_bytes());
    } else {
        key.push(1);
        key.extend_from_slice(&Blake2b::<U32>::digest(value.as_bytes()));
    }
    key
}

impl Values {
    /// The number of a value, one more user counted.
    pub fn acquire(&mut self, value: &str) -> ValueId {
        self.acquire_key(&key_of(value))
    }

    /// The key of a value, by which another state knows it.
    pub fn key(&self, id: ValueId) -> &[u8] {
        &self.entries[id].key
    }

    /// As [`Values::acquire`], by its key.
    pub fn acquire_key(&mut self, key: &[u8]) -> ValueId {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        let hash = hasher.finish();
        let entries = &mut self.entries;
        if let Some(id) = self.table.find(hash, |id| &entries[*id].key[..] == key) {
            entries[*id].users += 1;
            return *id;
        }
        let key = SmallVec::<[u8; 24]>::from_slice(key);
        self.bytes += ENTRY_BYTES + if key.spilled() { key.len() } else { 0 };
        let id = entries.insert(Entry { hash, key, users: 1, postings: SmallVec::new() });
        self.table.insert_unique(hash, id, |id| entries[*id].hash);
        id
    }

    /// One more user of a value.
    pub fn share(&mut self, id: ValueId) {
        self.entries[id].users += 1;
    }

    /// One user less.
    pub fn release(&mut self, id: ValueId) {
        let entry = &mut self.entries[id];
        entry.users -= 1;
        if entry.users == 0 {
            let hash = entry.hash;
            self.bytes -= ENTRY_BYTES + if entry.key.spilled() { entry.key.len() } else { 0 };
            if let Ok(occupied) = self.table.find_entry(hash, |other| *other == id) {
                occupied.remove();
            }
            self.entries.remove(id);
        }
    }

    /// The units that have a value.
    #[inline]
    pub fn postings(&self, id: ValueId) -> &[Posting] {
        &self.entries[id].postings
    }

    /// Adds a posting; gives its place.
    pub fn post(&mut self, id: ValueId, posting: Posting) -> u32 {
        let postings = &mut self.entries[id].postings;
        postings.push(posting);
        self.bytes += size_of::<Posting>();
        postings.len() as u32 - 1
    }

    /// Takes the posting at a place out; gives the one that is there now.
    pub fn withdraw(&mut self, id: ValueId, place: u32) -> Option<Posting> {
        let postings = &mut self.entries[id].postings;
        postings.swap_remove(place as usize);
        self.bytes -= size_of::<Posting>();
        if postings.len() * 4 < postings.capacity() && postings.spilled() {
            postings.shrink_to_fit();
        }
        postings.get(place as usize).copied()
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.entries.count()
    }

    /// What they and their postings take.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }
}
