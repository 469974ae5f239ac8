//! Items and atomic values of XQuery over one untyped document.

use super::error::TransformError;
use crate::document::{Document, NodeId, NodeKind};
use crate::xquery::ast::ExactName;
use rust_decimal::Decimal;
use rust_decimal::prelude::{FromPrimitive, ToPrimitive};
use smallvec::SmallVec;
use std::rc::Rc;

/// An item of a sequence. Documents have no schema, so what a node's text is worth is decided where it is used.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// A node of the document.
    Node(NodeId),
    /// A constructed node.
    Constructed(Rc<Fragment<'a>>),
    /// An atomic value.
    Atomic(Atomic<'a>),
}

/// Text of a value: of the document, of the query, or computed.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Somebody else's.
    Borrowed(&'a str),
    /// Computed.
    Shared(Rc<str>),
}

impl Text<'_> {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Shared(text.into())
    }
}

/// An atomic value.
#[derive(Clone, Debug)]
pub enum Atomic<'a> {
    /// `xs:untypedAtomic`: the text of a node.
    Untyped(Text<'a>),
    /// `xs:string`
    String(Text<'a>),
    /// `xs:integer`
    Integer(i64),
    /// `xs:decimal`
    Decimal(Decimal),
    /// `xs:double`
    Double(f64),
    /// `xs:boolean`
    Boolean(bool),
}

/// A sequence.
pub type Sequence<'a> = SmallVec<[Item<'a>; 1]>;

/// A sequence of one atomic value.
pub fn single(value: Atomic<'_>) -> Sequence<'_> {
    SmallVec::from_iter([Item::Atomic(value)])
}

impl<'a> Atomic<'a> {
    /// Its name, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Atomic::Untyped(_) => "xs:untypedAtomic",
            Atomic::String(_) => "xs:string",
            Atomic::Integer(_) => "xs:integer",
            Atomic::Decimal(_) => "xs:decimal",
            Atomic::Double(_) => "xs:double",
            Atomic::Boolean(_) => "xs:boolean",
        }
    }

    /// Whether it is a number.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Atomic::Integer(_) | Atomic::Decimal(_) | Atomic::Double(_))
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Atomic::Untyped(text) | Atomic::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The value cast to `xs:string` (Functions and Operators 1.0, §17.1.2).
    pub fn to_text(&self) -> Text<'a> {
        match self {
            Atomic::Untyped(text) | Atomic::String(text) => text.clone(),
            Atomic::Integer(value) => value.to_string().into(),
            Atomic::Decimal(value) => value.normalize().to_string().into(),
            Atomic::Double(value) => double_text(*value).into(),
            Atomic::Boolean(value) => Text::Borrowed(if *value { "true" } else { "false" }),
        }
    }

    /// The value as an `xs:double`: numbers promoted, untyped text cast.
    ///
    /// # Errors
    /// `FORG0001` for untyped text that is no number, `XPTY0004` for other types.
    pub fn to_double(&self) -> Result<f64, TransformError> {
        match self {
            Atomic::Untyped(text) => {
                parse_double(text.as_str()).ok_or_else(|| not_castable(text.as_str(), "xs:double"))
            }
            Atomic::Integer(value) => Ok(*value as f64),
            Atomic::Decimal(value) => Ok(decimal_to_double(*value)),
            Atomic::Double(value) => Ok(*value),
            other => Err(TransformError::dynamic("XPTY0004", format!("a number is needed, not {}", other.type_name()))),
        }
    }
}

/// One piece of constructed content.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// An element begins: its name and the namespaces it declares.
    Start(&'a ExactName, &'a [(Box<str>, Box<str>)]),
    /// An attribute of the element that has just begun.
    Attribute(AttributeName<'a>, Text<'a>),
    /// The innermost element ends.
    End,
    /// Text.
    Text(Text<'a>),
    /// A copy of a node of the document: an element, a text, a comment or a processing instruction.
    Copy(NodeId),
    /// A comment.
    Comment(&'a str),
    /// A processing instruction: target and data.
    ProcessingInstruction(&'a str, &'a str),
}

/// Where the name of an attribute comes from.
#[derive(Clone, Copy, Debug)]
pub enum AttributeName<'a> {
    /// A constructor.
    Constructed(&'a ExactName),
    /// A copied attribute of the document.
    Source(NodeId),
}

/// A constructed node on its own.
#[derive(Debug)]
pub struct Fragment<'a> {
    events: Vec<Event<'a>>,
}

impl<'a> Fragment<'a> {
    /// A node made of these events.
    pub fn new(events: Vec<Event<'a>>) -> Fragment<'a> {
        Fragment { events }
    }

    /// What it is made of.
    pub fn events(&self) -> &[Event<'a>] {
        &self.events
    }

    /// Its string-value.
    pub fn text(&self, document: &Document) -> String {
        let mut text = String::new();
        match &self.events[..] {
            [Event::Attribute(_, value)] => text.push_str(value.as_str()),
            [Event::Comment(value) | Event::ProcessingInstruction(_, value)] => text.push_str(value),
            events => {
                for event in events {
                    match event {
                        Event::Text(value) => text.push_str(value.as_str()),
                        Event::Copy(node) if is_text_holder(document, *node) => {
                            text.push_str(document.string_value(*node));
                        }
                        _ => {}
                    }
                }
            }
        }
        text
    }

    /// Whether its typed value is a string rather than untyped.
    pub fn is_string_valued(&self) -> bool {
        matches!(self.events[..], [Event::Comment(_) | Event::ProcessingInstruction(..)])
    }
}

fn is_text_holder(document: &Document, node: NodeId) -> bool {
    matches!(document.node(node).kind, NodeKind::Element | NodeKind::Text)
}

/// The integer that a text stands for.
///
/// # Errors
/// `FORG0001` for any other text.
pub fn parse_integer(text: &str) -> Result<i64, TransformError> {
    trim(text).parse().map_err(|_| not_castable(text, "xs:integer"))
}

/// The error of a text that is no value of a type.
pub fn not_castable(text: &str, wanted: &str) -> TransformError {
    let shown: String = text.chars().take(40).collect();
    TransformError::dynamic("FORG0001", format!("{shown:?} is no {wanted}"))
}

/// A decimal as the nearest double.
pub fn decimal_to_double(value: Decimal) -> f64 {
    // By its digits: the conversion of the library multiplies and rounds twice.
    value.to_string().parse().unwrap_or_else(|_| value.to_f64().unwrap_or(f64::NAN))
}

/// A double as a decimal, if it has a value that fits.
pub fn double_to_decimal(value: f64) -> Option<Decimal> {
    if value.is_finite() { Decimal::from_f64(value) } else { None }
}

/// The `xs:double` that a text stands for (XML Schema 1.1 part 2, §3.3.5), white space around it allowed.
pub fn parse_double(text: &str) -> Option<f64> {
    let text = trim(text);
    match text {
        "INF" | "+INF" => return Some(f64::INFINITY),
        "-INF" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    // What Rust reads beyond the schema's numbers ("inf", "nan", "infinity") has other letters than an exponent's.
    let numeric = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if text.is_empty() || !text.as_bytes().iter().all(numeric) {
        return None;
    }
    text.parse().ok()
}

/// Without the white space of XML around it.
pub fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// A double as `xs:string` (Functions and Operators 1.0, §17.1.2).
pub fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF" } else { "-INF" }.into();
    }
    let size = value.abs();
    if size == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.into();
    }
    if (1e-6..1e6).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_text() {
        let cases = [
            (1.0, "1"),
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e6, "1.0E6"),
            (999_999.5, "999999.5"),
            (1.5e-7, "1.5E-7"),
            (1e-6, "0.000001"),
            (1.25e10, "1.25E10"),
            (f64::INFINITY, "INF"),
        ];
        for (value, text) in cases {
            assert_eq!(double_text(value), text);
        }
    }

    #[test]
    fn texts_as_doubles() {
        for (text, value) in [(" 12 ", 12.0), ("1e3", 1000.0), ("+.5", 0.5), ("5.", 5.0), ("-INF", f64::NEG_INFINITY)] {
            assert_eq!(parse_double(text), Some(value), "{text}");
        }
        for text in ["", "inf", "infinity", "nan", "1 2", "0x10", "e", ".", "+", "1e", "--1"] {
            assert_eq!(parse_double(text), None, "{text}");
        }
    }
}
