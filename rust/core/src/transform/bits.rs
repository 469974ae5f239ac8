//! Sets of bindings.

use smallvec::SmallVec;

/// A set of bindings of one stream, one bit each; the streams of most documents fit into a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: SmallVec<[u64; 2]>,
}

impl Bits {
    /// The empty set among `count` bindings.
    pub fn none(count: usize) -> Bits {
        Bits { words: SmallVec::from_elem(0, count.div_ceil(64)) }
    }

    /// The bindings `from..to` among `count`.
    pub fn range(count: usize, from: usize, to: usize) -> Bits {
        let mut bits = Bits::none(count);
        let mut at = from;
        while at < to {
            let end = to.min((at / 64 + 1) * 64);
            let length = end - at;
            let ones = if length == 64 { u64::MAX } else { ((1 << length) - 1) << (at % 64) };
            bits.words[at / 64] |= ones;
            at = end;
        }
        bits
    }

    /// The bindings among up to 64 that a word has bits for.
    pub fn of_word(count: usize, word: u64) -> Bits {
        let mut bits = Bits::none(count);
        if let Some(first) = bits.words.first_mut() {
            *first = word;
        }
        bits
    }

    /// Adds a binding.
    #[inline]
    pub fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Removes a binding.
    #[inline]
    pub fn remove(&mut self, at: usize) {
        self.words[at / 64] &= !(1 << (at % 64));
    }

    /// Whether a binding is in the set.
    #[inline]
    pub fn contains(&self, at: usize) -> bool {
        self.words[at / 64] & 1 << (at % 64) != 0
    }

    /// The first 64 bindings.
    #[inline]
    pub fn first_word(&self) -> u64 {
        self.words.first().copied().unwrap_or(0)
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Keeps what is in another set too.
    #[inline]
    pub fn keep(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Adds what is in another set.
    #[inline]
    pub fn add(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Removes what is in another set.
    #[inline]
    pub fn subtract(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(number, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    number * 64 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (count, from, to) in [(0, 0, 0), (64, 0, 64), (130, 60, 130), (70, 3, 5), (200, 64, 128), (65, 64, 65)] {
            let bits = Bits::range(count, from, to);
            assert_eq!(bits.iter().collect::<Vec<_>>(), (from..to).collect::<Vec<_>>());
            assert_eq!(bits.is_empty(), from == to);
        }
    }
}
