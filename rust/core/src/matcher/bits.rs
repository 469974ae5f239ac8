//! A set of numbers that is emptied after every document at the cost of its members, not of its size.

/// A reusable set of small numbers.
#[derive(Debug, Default)]
pub(super) struct BitSet {
    words: Vec<u64>,
    touched: Vec<u32>,
}

impl BitSet {
    /// Makes room for members below `size`.
    pub(super) fn reserve(&mut self, size: usize) {
        let words = size.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// Adds a member; whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, member: u32) -> bool {
        let word = &mut self.words[member as usize / 64];
        let bit = 1 << (member % 64);
        let new = *word & bit == 0;
        if new {
            if *word == 0 {
                self.touched.push(member / 64);
            }
            *word |= bit;
        }
        new
    }

    /// Adds the members that are the bits of one word: `word` times 64 and so on.
    #[inline]
    pub(super) fn insert_word(&mut self, word: u32, bits: u64) {
        let known = &mut self.words[word as usize];
        if *known == 0 {
            self.touched.push(word);
        }
        *known |= bits;
    }

    /// Whether a number is a member.
    #[inline]
    pub(super) fn contains(&self, member: u32) -> bool {
        self.words[member as usize / 64] & 1 << (member % 64) != 0
    }

    /// The members that are the bits of one word.
    #[inline]
    pub(super) fn word(&self, word: u32) -> u64 {
        self.words[word as usize]
    }

    /// Removes all members.
    pub(super) fn clear(&mut self) {
        for word in self.touched.drain(..) {
            self.words[word as usize] = 0;
        }
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8 + self.touched.capacity() * 4
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
