//! Parsed XQuery expressions.
//!
//! The parser resolves everything that is lexical: prefixes are URIs, variables are slots, functions are numbers, and
//! every way to name the document (`$doc`, `doc("…")`, a leading `/`) is [`Expr::Root`]. So two texts that differ only
//! in white space, prefixes of names or variable names are equal expressions, which is how identical plans are found.
//! Nesting is bounded by the parser, so recursion over expressions is safe.

pub use crate::xpath::ast::{Axis, CompareOp};
use rust_decimal::Decimal;
use std::hash::{Hash, Hasher};

/// Number of a variable: bindings are numbered in the order in which they occur in the text, from 0.
pub type Slot = u32;

/// A resolved name.
#[derive(Clone, Debug)]
pub struct Name {
    /// Prefix as written, empty if none; only constructors look at it.
    pub prefix: Box<str>,
    /// Namespace URI, empty for none.
    pub uri: Box<str>,
    /// Local part.
    pub local: Box<str>,
}

/// An `xs:double` that can be a key: compared by its bits.
#[derive(Clone, Copy, Debug)]
pub struct Double(pub f64);

impl PartialEq for Double {
    fn eq(&self, other: &Double) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Double {}

impl Hash for Double {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// `"…"` or `'…'`, references resolved.
    String(Box<str>),
    /// `12`
    Integer(i64),
    /// `1.5`
    Decimal(Decimal),
    /// `1e3`
    Double(Double),
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`: true if any pair of items compares so.
    General(CompareOp),
    /// `eq`, `ne`, `lt`, `le`, `gt`, `ge`: of single values.
    Value(CompareOp),
    /// `is`
    Same,
    /// `<<`
    Before,
    /// `>>`
    After,
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `div`
    Divide,
    /// `idiv`
    IntegerDivide,
    /// `mod`
    Modulo,
}

/// Operators on node sequences; the result is in document order without duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOp {
    /// `union`, `|`
    Union,
    /// `intersect`
    Intersect,
    /// `except`
    Except,
}

/// Node tests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeTest {
    /// `node()`
    Node,
    /// `*`: any node of the axis's principal kind.
    Any,
    /// `p:local`, `local`
    Name(Name),
    /// `p:*`: the URI.
    Namespace(Box<str>),
    /// `*:local`
    Local(Box<str>),
    /// `text()`
    Text,
    /// `comment()`
    Comment,
    /// `processing-instruction()`, with its target if one is given.
    ProcessingInstruction(Option<Box<str>>),
    /// `element()`, `element(*)`, `element(name)`
    Element(Option<Name>),
    /// `attribute()`, `attribute(*)`, `attribute(name)`
    Attribute(Option<Name>),
    /// `document-node()`
    Document,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// `axis::test[…]…`; `//` is a step `descendant-or-self::node()` of its own.
    Axis {
        /// Axis; never `namespace`.
        axis: Axis,
        /// Node test.
        test: NodeTest,
        /// Predicates, in order.
        predicates: Vec<Expr>,
    },
    /// Any other expression, evaluated for each node before it: `a/string()`, `a/(b|c)[1]`.
    Expr(Expr),
}

/// A path: a start and at least one step. `/a` starts from [`Expr::Root`], `a` from [`Expr::Context`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// Where it starts.
    pub start: Expr,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A clause before `return`, in the order written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Clause {
    /// `for $slot at $position in sequence`
    For {
        /// The variable.
        slot: Slot,
        /// The variable after `at`.
        position: Option<Slot>,
        /// What it runs over.
        sequence: Expr,
    },
    /// `let $slot := value`
    Let {
        /// The variable.
        slot: Slot,
        /// Its value.
        value: Expr,
    },
    /// `where condition`
    Where(Expr),
    /// `order by …` (`stable` or not: the order of ties is always kept).
    OrderBy(Vec<OrderKey>),
}

/// One key of `order by`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OrderKey {
    /// The key.
    pub key: Expr,
    /// `descending`
    pub descending: bool,
    /// `empty greatest` (the default is least).
    pub empty_greatest: bool,
}

/// A FLWOR expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flwor {
    /// Clauses; the first is `for` or `let`.
    pub clauses: Vec<Clause>,
    /// `return`
    pub result: Expr,
}

/// A part of an attribute's value or of an element's content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Literal text, references resolved; boundary white space is gone.
    Text(Box<str>),
    /// `{…}`, or in content a nested direct constructor.
    Expr(Expr),
}

/// `<name …>…</name>`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementConstructor {
    /// Its name.
    pub name: ExactName,
    /// Namespace declarations among its attributes: prefix (empty for the default) and URI (empty to undeclare).
    pub namespaces: Vec<(Box<str>, Box<str>)>,
    /// Other attributes, in the order written.
    pub attributes: Vec<(ExactName, Vec<Part>)>,
    /// Content.
    pub content: Vec<Part>,
}

/// A name whose prefix counts: what constructors write.
#[derive(Clone, Debug)]
pub struct ExactName(pub Name);

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A literal.
    Literal(Literal),
    /// `a, b, c`; `()` has no members.
    Sequence(Vec<Expr>),
    /// A variable.
    Variable(Slot),
    /// The document node: `/`, `$doc`, `doc("…")`, `document("…")`.
    Root,
    /// `.`
    Context,
    /// FLWOR
    Flwor(Box<Flwor>),
    /// `some` and `every`
    Quantified {
        /// `every`
        every: bool,
        /// Variables and what they run over.
        bindings: Vec<(Slot, Expr)>,
        /// `satisfies`
        satisfies: Box<Expr>,
    },
    /// `if (condition) then yes else no`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `or`
    Or(Box<Expr>, Box<Expr>),
    /// `and`
    And(Box<Expr>, Box<Expr>),
    /// Comparisons
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// Arithmetic
    Arithmetic(ArithmeticOp, Box<Expr>, Box<Expr>),
    /// `-a`
    Negate(Box<Expr>),
    /// `a to b`
    Range(Box<Expr>, Box<Expr>),
    /// `union`, `intersect`, `except`
    Combine(SetOp, Box<Expr>, Box<Expr>),
    /// A path.
    Path(Box<Path>),
    /// `primary[predicate]…`
    Filter(Box<Expr>, Vec<Expr>),
    /// A function call; the parser has checked the number of arguments.
    Call(Function, Vec<Expr>),
    /// A direct element constructor.
    Element(Box<ElementConstructor>),
    /// `element name {…}` with a constant name.
    ComputedElement(ExactName, Box<Expr>),
    /// `attribute name {…}` with a constant name.
    ComputedAttribute(ExactName, Box<Expr>),
    /// `text {…}`
    ComputedText(Box<Expr>),
    /// `<!--…-->`
    Comment(Box<str>),
    /// `<?target data?>`
    ProcessingInstruction(Box<str>, Box<str>),
}

/// Whether `name` and `other` are one expanded name.
fn same(name: &Name, other: &Name) -> bool {
    name.local == other.local && name.uri == other.uri
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        same(self, other)
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uri.hash(state);
        self.local.hash(state);
    }
}

impl PartialEq for ExactName {
    fn eq(&self, other: &ExactName) -> bool {
        same(&self.0, &other.0) && self.0.prefix == other.0.prefix
    }
}

impl Eq for ExactName {}

impl Hash for ExactName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        self.0.prefix.hash(state);
    }
}

/// In the table below: no greatest number of arguments.
const MANY: usize = 255;

macro_rules! functions {
    ($($(#[$meta:meta])* $item:ident = $name:literal, $least:literal ..= $most:tt;)*) => {
        /// The function library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function { $($(#[$meta])* #[doc = concat!("`", $name, "`")] $item),* }

        impl Function {
            /// All of them.
            pub const ALL: &[Function] = &[$(Function::$item),*];

            /// Its name, with `xs:` where it is a constructor function.
            pub fn name(self) -> &'static str {
                match self { $(Function::$item => $name),* }
            }

            /// Least and greatest number of arguments (`usize::MAX` for any number).
            pub fn arity(self) -> (usize, usize) {
                let (least, most) = match self { $(Function::$item => ($least, $most)),* };
                (least, if most == MANY { usize::MAX } else { most })
            }
        }
    };
}

functions! {
    Abs = "abs", 1..=1;
    Avg = "avg", 1..=1;
    Boolean = "boolean", 1..=1;
    Ceiling = "ceiling", 1..=1;
    Compare = "compare", 2..=2;
    Concat = "concat", 2..=MANY;
    Contains = "contains", 2..=2;
    Count = "count", 1..=1;
    Data = "data", 1..=1;
    DistinctValues = "distinct-values", 1..=1;
    Empty = "empty", 1..=1;
    EndsWith = "ends-with", 2..=2;
    ExactlyOne = "exactly-one", 1..=1;
    Exists = "exists", 1..=1;
    False = "false", 0..=0;
    Floor = "floor", 1..=1;
    IndexOf = "index-of", 2..=2;
    Last = "last", 0..=0;
    LocalName = "local-name", 0..=1;
    LowerCase = "lower-case", 1..=1;
    Max = "max", 1..=1;
    Min = "min", 1..=1;
    Name = "name", 0..=1;
    NamespaceUri = "namespace-uri", 0..=1;
    NormalizeSpace = "normalize-space", 0..=1;
    Not = "not", 1..=1;
    Number = "number", 0..=1;
    OneOrMore = "one-or-more", 1..=1;
    Position = "position", 0..=0;
    Reverse = "reverse", 1..=1;
    Root = "root", 0..=1;
    Round = "round", 1..=1;
    StartsWith = "starts-with", 2..=2;
    String = "string", 0..=1;
    StringJoin = "string-join", 2..=2;
    StringLength = "string-length", 0..=1;
    Subsequence = "subsequence", 2..=3;
    Substring = "substring", 2..=3;
    SubstringAfter = "substring-after", 2..=2;
    SubstringBefore = "substring-before", 2..=2;
    Sum = "sum", 1..=2;
    Translate = "translate", 3..=3;
    True = "true", 0..=0;
    Unordered = "unordered", 1..=1;
    UpperCase = "upper-case", 1..=1;
    XsBoolean = "xs:boolean", 1..=1;
    XsDecimal = "xs:decimal", 1..=1;
    XsDouble = "xs:double", 1..=1;
    XsInteger = "xs:integer", 1..=1;
    XsString = "xs:string", 1..=1;
    ZeroOrOne = "zero-or-one", 1..=1;
}

/// A parsed query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// The expression.
    pub body: Expr,
    /// How many variables it binds.
    pub slots: Slot,
}
