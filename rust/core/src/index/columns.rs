//! Constants in columns: numbers as they are, strings by their number, in eight bytes each, or in four if all constants
//! of a signature fit.

use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// A constant in a column. Number literals are never NaN, so NaN patterns are free to carry string numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Value(u64);

const STRING: u64 = 0xFFFF << 48;

/// A constant in half the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Half(u32);

const HALF_STRING: u32 = 0xFFC0_0000;

/// What can be compared with the value of a node.
pub trait Comparand: Copy + PartialEq {
    /// A string constant, if one of this number fits.
    fn string(number: u32) -> Option<Self>;

    /// The number of the string constant, if it is one.
    fn as_string(self) -> Option<u32>;

    /// The number constant (NaN for strings).
    fn as_number(self) -> f64;
}

impl Value {
    /// A string constant.
    pub fn string(number: u32) -> Value {
        Value(STRING | u64::from(number))
    }

    /// A number constant; zero has one sign, as comparisons see it.
    pub fn number(number: f64) -> Value {
        Value((number + 0.0).to_bits())
    }
}

impl Comparand for Value {
    #[inline]
    fn string(number: u32) -> Option<Value> {
        Some(Value::string(number))
    }

    #[inline]
    fn as_string(self) -> Option<u32> {
        (self.0 >> 48 == 0xFFFF).then_some(self.0 as u32)
    }

    #[inline]
    fn as_number(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl Half {
    fn of(value: Value) -> Option<Half> {
        match value.as_string() {
            Some(number) => Half::string(number),
            None => {
                let number = value.as_number() as f32;
                (f64::from(number) == value.as_number()).then_some(Half(number.to_bits()))
            }
        }
    }

    fn whole(self) -> Value {
        self.as_string().map_or_else(|| Value::number(self.as_number()), Value::string)
    }
}

impl Comparand for Half {
    #[inline]
    fn string(number: u32) -> Option<Half> {
        (number < !HALF_STRING).then_some(Half(HALF_STRING | number))
    }

    #[inline]
    fn as_string(self) -> Option<u32> {
        (self.0 >= HALF_STRING).then_some(self.0 & !HALF_STRING)
    }

    #[inline]
    fn as_number(self) -> f64 {
        f64::from(f32::from_bits(self.0))
    }
}

/// Some constants.
#[derive(Clone, Copy, Debug)]
pub enum Comparands<'a> {
    /// In eight bytes each.
    Whole(&'a [Value]),
    /// In four.
    Halves(&'a [Half]),
}

impl<'a> Comparands<'a> {
    /// So many constants that [`write`] wrote to the start of `words`.
    #[inline]
    pub(super) fn read(words: &'a [u64], are_halves: bool, count: usize) -> Comparands<'a> {
        if are_halves {
            Comparands::Halves(&bytemuck::cast_slice(&words[..count.div_ceil(2)])[..count])
        } else {
            Comparands::Whole(bytemuck::cast_slice(&words[..count]))
        }
    }

    /// A part of them.
    #[inline]
    pub fn slice(self, part: Range<usize>) -> Comparands<'a> {
        match self {
            Comparands::Whole(values) => Comparands::Whole(&values[part]),
            Comparands::Halves(halves) => Comparands::Halves(&halves[part]),
        }
    }

    /// One of them.
    #[inline]
    pub fn get(self, at: usize) -> Value {
        match self {
            Comparands::Whole(values) => values[at],
            Comparands::Halves(halves) => halves[at].whole(),
        }
    }
}

/// Appends the constants of a signature; whether they are halves.
pub(super) fn write(values: &[Value], into: &mut Vec<u64>) -> bool {
    let start = into.len();
    let fit = values.chunks(2).all(|pair| {
        let half = |at: usize| pair.get(at).map_or(Some(Half(0)), |value| Half::of(*value));
        let (Some(first), Some(second)) = (half(0), half(1)) else { return false };
        into.push(bytemuck::cast([first, second]));
        true
    });
    if !fit {
        into.truncate(start);
        into.extend_from_slice(bytemuck::cast_slice(values));
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constants(values: &[Value]) -> (bool, Vec<Value>, usize) {
        let mut words = Vec::new();
        let are_halves = write(values, &mut words);
        let read = Comparands::read(&words, are_halves, values.len());
        (are_halves, (0..values.len()).map(|at| read.get(at)).collect(), words.len())
    }

    #[test]
    fn what_fits_takes_half_the_bytes() {
        let fitting = [
            Value::number(0.0),
            Value::number(-0.0),
            Value::number(-2.5),
            Value::number(f64::from(f32::MAX)),
            Value::number(f64::from(f32::MIN_POSITIVE / 2.0)),
            Value::number(f64::INFINITY),
            Value::number(f64::NEG_INFINITY),
            Value::string(0),
            Value::string(!HALF_STRING - 1),
        ];
        for count in 0..=fitting.len() {
            assert_eq!(constants(&fitting[..count]), (true, fitting[..count].to_vec(), count.div_ceil(2)));
        }
    }

    #[test]
    fn what_does_not_fit_stays_whole() {
        let others = [0.1, 16_777_217.0, f64::MAX, f64::MIN_POSITIVE, 1e-46].map(Value::number);
        for value in others.into_iter().chain([Value::string(!HALF_STRING), Value::string(u32::MAX)]) {
            let values = [Value::number(1.0), Value::string(7), value];
            assert_eq!(constants(&values), (false, values.to_vec(), 3));
        }
    }
}
