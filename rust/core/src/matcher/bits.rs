//! A set of numbers that is emptied after every document at the cost of its members, and hardly at that of its size.

/// Members of a set that are the bits of one half of a word: there are many of these, and few bits in most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    number: u32,
    bits: u32,
}

impl Word {
    /// Adds a member to the words from `start` on: to the last if it belongs there.
    pub(super) fn append(words: &mut Vec<Word>, start: usize, member: u32) {
        let (number, bits) = (member / u32::BITS, 1 << (member % u32::BITS));
        match words[start..].last_mut() {
            Some(last) if last.number == number => last.bits |= bits,
            _ => words.push(Word { number, bits }),
        }
    }

    /// Number of the whole word, and the bits in it.
    #[inline]
    fn whole(self) -> (u32, u64) {
        (self.number / 2, u64::from(self.bits) << (self.number % 2 * u32::BITS))
    }
}

/// Words that are emptied together: a line of the processor's cache.
const LINE: usize = 8;

/// A reusable set of small numbers.
#[derive(Debug, Default)]
pub(super) struct BitSet {
    words: Vec<u64>,
    /// A bit for each [`LINE`] of words that may have members. Noting down each word when its first member came cost
    /// a branch that can not be predicted.
    lines: Vec<u64>,
}

impl BitSet {
    /// Makes room for members below `size`.
    pub(super) fn reserve(&mut self, size: usize) {
        let lines = size.div_ceil(64 * LINE);
        if self.words.len() < lines * LINE {
            self.words.resize(lines * LINE, 0);
            self.lines.resize(lines.div_ceil(64), 0);
        }
    }

    #[inline]
    fn word(&mut self, number: usize) -> &mut u64 {
        self.lines[number / (64 * LINE)] |= 1 << (number / LINE % 64);
        &mut self.words[number]
    }

    /// Adds a member; whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, member: u32) -> bool {
        let word = self.word(member as usize / 64);
        let bit = 1 << (member % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds the members that a word holds.
    #[inline]
    pub(super) fn insert_word(&mut self, word: Word) {
        let (number, bits) = word.whole();
        *self.word(number as usize) |= bits;
    }

    /// Whether a number is a member.
    #[inline]
    pub(super) fn contains(&self, member: u32) -> bool {
        self.words[member as usize / 64] & 1 << (member % 64) != 0
    }

    /// Number of a whole word, and the members in it that the word holds, too.
    #[inline]
    fn common(&self, word: Word) -> (u32, u64) {
        let (number, bits) = word.whole();
        (number, self.words[number as usize] & bits)
    }

    /// Whether a word holds members.
    #[inline]
    pub(super) fn has_members_in(&self, word: Word) -> bool {
        self.common(word).1 != 0
    }

    /// The members that a word holds, too.
    #[inline]
    pub(super) fn members_in(&self, word: Word) -> impl Iterator<Item = u32> {
        let (number, bits) = self.common(word);
        numbers(bits).map(move |bit| number * u64::BITS + bit)
    }

    /// Removes all members.
    pub(super) fn clear(&mut self) {
        for (at, lines) in self.lines.iter_mut().enumerate() {
            for line in numbers(std::mem::take(lines)) {
                let start = (at * 64 + line as usize) * LINE;
                self.words[start..start + LINE].fill(0);
            }
        }
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        (self.words.capacity() + self.lines.capacity()) * 8
    }
}

/// The numbers of the bits that are set.
pub(super) fn numbers(mut word: u64) -> impl Iterator<Item = u32> + Clone {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        let some = word != 0;
        word &= word.wrapping_sub(1);
        some.then_some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn members_are_those_put_in_since_it_was_emptied() {
        let size = 100_000;
        let mut set = BitSet::default();
        set.reserve(size);
        for round in 1..20u32 {
            let mut expected = BTreeSet::new();
            // Far apart, neighbours, and both ends.
            let members = (0..round * 7).map(|at| at * 7919 * round % size as u32);
            for member in members.chain([0, 1, 63, 64, 511, 512, size as u32 - 1]) {
                assert_eq!(set.insert(member), expected.insert(member), "{member}");
            }
            let mut words = Vec::new();
            for member in [31, 32, 40, 4095, 4096] {
                Word::append(&mut words, 0, member);
                expected.insert(member);
            }
            assert_eq!(words.len(), 4);
            words.iter().for_each(|word| set.insert_word(*word));
            assert!((0..size as u32).all(|member| set.contains(member) == expected.contains(&member)));
            for word in words {
                let held: Vec<u32> = set.members_in(word).collect();
                assert!(set.has_members_in(word) && held.iter().all(|member| expected.contains(member)));
            }
            set.clear();
            assert!((0..size as u32).all(|member| !set.contains(member)));
        }
    }
}
