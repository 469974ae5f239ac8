//! Constants in columns: eight bytes each, numbers as they are, strings by their number.

use bytemuck::{Pod, Zeroable};

/// A constant in a column. Number literals are never NaN, so NaN patterns are free to carry string numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Value(u64);

const STRING: u64 = 0xFFFF << 48;

impl Value {
    /// A string constant.
    pub fn string(number: u32) -> Value {
        Value(STRING | u64::from(number))
    }

    /// A number constant; zero has one sign, as comparisons see it.
    pub fn number(number: f64) -> Value {
        Value((number + 0.0).to_bits())
    }

    /// The number of the string constant, if it is one.
    #[inline]
    pub fn as_string(self) -> Option<u32> {
        (self.0 >> 48 == 0xFFFF).then_some(self.0 as u32)
    }

    /// The number constant (NaN for strings).
    #[inline]
    pub fn as_number(self) -> f64 {
        f64::from_bits(self.0)
    }
}
