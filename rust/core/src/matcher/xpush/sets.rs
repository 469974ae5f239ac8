//! Sets of numbers, each stored once.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Number of a set in one pool.
pub(super) type SetId = u32;
/// The set without members.
pub(super) const EMPTY: SetId = 0;

/// The pool: members of all sets in one array, ascending within a set.
#[derive(Debug)]
pub(super) struct Sets {
    starts: Vec<usize>,
    members: Vec<u32>,
    table: HashTable<SetId>,
    hasher: FixedState,
}

impl Default for Sets {
    fn default() -> Self {
        let mut sets =
            Sets { starts: vec![0], members: Vec::new(), table: HashTable::new(), hasher: FixedState::default() };
        sets.intern(&[]);
        sets
    }
}

impl Sets {
    /// Number of sets.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Members of all sets together.
    pub(super) fn member_count(&self) -> usize {
        self.members.len()
    }

    #[inline]
    pub(super) fn get(&self, set: SetId) -> &[u32] {
        &self.members[self.starts[set as usize]..self.starts[set as usize + 1]]
    }

    /// The number of a set whose members are ascending.
    pub(super) fn intern(&mut self, members: &[u32]) -> SetId {
        let hash = self.hasher.hash_one(members);
        if let Some(known) = self.table.find(hash, |set| self.get(*set) == members) {
            return *known;
        }
        let set = self.len() as SetId;
        self.members.extend_from_slice(members);
        self.starts.push(self.members.len());
        let (all, starts, hasher) = (&self.members, &self.starts, &self.hasher);
        self.table
            .insert_unique(hash, set, |set| hasher.hash_one(&all[starts[*set as usize]..starts[*set as usize + 1]]));
        set
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.members.len() * 4 + self.starts.len() * (8 + SET_SLOT_BYTES)
    }
}

/// What a set costs in the table, about.
const SET_SLOT_BYTES: usize = 8;
