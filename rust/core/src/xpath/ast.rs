//! Expressions as flat arrays of 16-byte cells.
//!
//! A parsed expression is a list of [`Cell`]s and the number of its root. Literals are not in the cells: a cell says
//! `constant number k`, so that expressions that differ only in constants have equal cells and share one *signature*.
//! Cells are plain data: an index stores them in a file and evaluates them in place from a memory map. Children always
//! come before their parents; nothing here recurses on drop.

use bytemuck::{Pod, Zeroable};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Number of an expression cell.
pub type ExprId = u32;
/// Number of a step cell.
pub type StepId = u32;
/// Number of a list cell (arguments, predicates).
pub type ListId = u32;
/// The end of a chain of steps or of a list.
pub const NONE: u32 = u32::MAX;

/// One cell; read it through [`Query::expr`], [`Query::step`] and [`Query::list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Cell {
    tag: u8,
    detail: u8,
    extra: u16,
    x: u32,
    y: u32,
    z: u32,
}

impl Hash for Cell {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two words instead of six numbers.
        state.write_u128(bytemuck::cast(*self));
    }
}

impl Cell {
    /// The cell with the number of its name test (if it has one) replaced.
    pub fn map_symbol(mut self, map: impl Fn(u32) -> u32) -> Cell {
        if self.tag == TAG_STEP && matches!(self.extra, TEST_NAME | TEST_TARGET) {
            self.x = map(self.x);
        }
        self
    }

    /// The cell with the numbers of the cells it refers to replaced; [`NONE`] stays.
    pub fn map_references(mut self, mut map: impl FnMut(u32) -> u32) -> Cell {
        let mut map = |id: &mut u32| {
            if *id != NONE {
                *id = map(*id);
            }
        };
        match self.tag {
            TAG_STRING | TAG_NUMBER => {}
            TAG_NEGATE | TAG_CALL => map(&mut self.x),
            TAG_STEP => {
                map(&mut self.y);
                map(&mut self.z);
            }
            TAG_PATH => {
                map(&mut self.x);
                if self.detail == 2 {
                    map(&mut self.y);
                }
            }
            _ => {
                map(&mut self.x);
                map(&mut self.y);
            }
        }
        self
    }
}

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$item_meta:meta])* $item:ident),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$item_meta])* $item),* }
        impl $name {
            // Compiles to a range check: the numbers are the discriminants.
            #[inline]
            fn from_u8(number: u8) -> $name {
                match number {
                    $(number if number == $name::$item as u8 => $name::$item,)*
                    _ => panic!(concat!("no ", stringify!($name), " of number {}"), number),
                }
            }
        }
    };
}

numbered! {
    /// Comparison operators (§3.4).
    CompareOp {
        /// `=`
        Equal,
        /// `!=`
        NotEqual,
        /// `<`
        Less,
        /// `<=`
        LessEqual,
        /// `>`
        Greater,
        /// `>=`
        GreaterEqual,
    }
}

impl CompareOp {
    /// The operator with its operands exchanged: `a < b` is `b > a`.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Less => CompareOp::Greater,
            CompareOp::LessEqual => CompareOp::GreaterEqual,
            CompareOp::Greater => CompareOp::Less,
            CompareOp::GreaterEqual => CompareOp::LessEqual,
            same => same,
        }
    }
}

numbered! {
    /// Numeric operators (§3.5).
    ArithmeticOp {
        /// `+`
        Add,
        /// `-`
        Subtract,
        /// `*`
        Multiply,
        /// `div`
        Divide,
        /// `mod`
        Modulo,
    }
}

numbered! {
    /// Axes (§2.2).
    Axis {
        /// `ancestor`
        Ancestor,
        /// `ancestor-or-self`
        AncestorOrSelf,
        /// `attribute`, `@`
        Attribute,
        /// `child`
        Child,
        /// `descendant`
        Descendant,
        /// `descendant-or-self`
        DescendantOrSelf,
        /// `following`
        Following,
        /// `following-sibling`
        FollowingSibling,
        /// `namespace`
        Namespace,
        /// `parent`, `..`
        Parent,
        /// `preceding`
        Preceding,
        /// `preceding-sibling`
        PrecedingSibling,
        /// `self`, `.`
        SelfAxis,
    }
}

numbered! {
    /// The core function library (§4).
    Function {
        /// `last()`
        Last,
        /// `position()`
        Position,
        /// `count(node-set)`
        Count,
        /// `id(object)`
        Id,
        /// `local-name(node-set?)`
        LocalName,
        /// `namespace-uri(node-set?)`
        NamespaceUri,
        /// `name(node-set?)`
        Name,
        /// `string(object?)`
        String,
        /// `concat(string, string, string*)`
        Concat,
        /// `starts-with(string, string)`
        StartsWith,
        /// `contains(string, string)`
        Contains,
        /// `substring-before(string, string)`
        SubstringBefore,
        /// `substring-after(string, string)`
        SubstringAfter,
        /// `substring(string, number, number?)`
        Substring,
        /// `string-length(string?)`
        StringLength,
        /// `normalize-space(string?)`
        NormalizeSpace,
        /// `translate(string, string, string)`
        Translate,
        /// `boolean(object)`
        Boolean,
        /// `not(boolean)`
        Not,
        /// `true()`
        True,
        /// `false()`
        False,
        /// `lang(string)`
        Lang,
        /// `number(object?)`
        Number,
        /// `sum(node-set)`
        Sum,
        /// `floor(number)`
        Floor,
        /// `ceiling(number)`
        Ceiling,
        /// `round(number)`
        Round,
    }
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathStart {
    /// `/…`: the document node.
    Root,
    /// The context node.
    Context,
    /// The node-set of an expression: `(…)[…]/…`.
    Expr(ExprId),
}

/// A node test (§2.3); the number is a [`Symbol`](super::symbols::Symbol).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeTest {
    /// `node()`
    Node,
    /// `*`: any node of the axis's principal type.
    Any,
    /// A name test on nodes of the axis's principal type.
    Name(u32),
    /// `text()`
    Text,
    /// `comment()`
    Comment,
    /// `processing-instruction()`
    ProcessingInstruction,
    /// `processing-instruction('target')`; the symbol is the target as an expanded name in no namespace.
    ProcessingInstructionNamed(u32),
}

/// A location step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Axis.
    pub axis: Axis,
    /// Node test.
    pub test: NodeTest,
    /// Predicates, in order.
    pub predicates: ListId,
    /// The step after this one, or [`NONE`].
    pub next: StepId,
}

/// An expression cell, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// `a or b`
    Or(ExprId, ExprId),
    /// `a and b`
    And(ExprId, ExprId),
    /// `a = b` and the like
    Compare(CompareOp, ExprId, ExprId),
    /// `a + b` and the like
    Arithmetic(ArithmeticOp, ExprId, ExprId),
    /// `-a`
    Negate(ExprId),
    /// `a | b`
    Union(ExprId, ExprId),
    /// A string literal: the slot of its value among the constants.
    StringConstant(u32),
    /// A number literal: the slot of its value among the constants.
    NumberConstant(u32),
    /// A function call with its argument list.
    Call(Function, ListId),
    /// A location path; no first step means `/` alone (start [`PathStart::Root`]).
    Path(PathStart, StepId),
    /// `primary[predicate]…`
    Filter(ExprId, ListId),
}

/// A constant of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A string literal.
    String(Box<str>),
    /// A number literal.
    Number(f64),
}

/// A borrowed constant, as evaluation takes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConstantRef<'a> {
    /// A string literal.
    String(&'a str),
    /// A number literal.
    Number(f64),
}

impl Constant {
    /// Borrows.
    pub fn as_ref(&self) -> ConstantRef<'_> {
        match self {
            Constant::String(value) => ConstantRef::String(value),
            Constant::Number(value) => ConstantRef::Number(*value),
        }
    }
}

/// The cells of an expression and its root; what a signature is.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The cells.
    pub cells: &'a [Cell],
    /// The whole expression.
    pub root: ExprId,
}

const TAG_OR: u8 = 0;
const TAG_AND: u8 = 1;
const TAG_COMPARE: u8 = 2;
const TAG_ARITHMETIC: u8 = 3;
const TAG_NEGATE: u8 = 4;
const TAG_UNION: u8 = 5;
const TAG_STRING: u8 = 6;
const TAG_NUMBER: u8 = 7;
const TAG_CALL: u8 = 8;
const TAG_PATH: u8 = 9;
const TAG_FILTER: u8 = 10;
const TAG_STEP: u8 = 11;
const TAG_LIST: u8 = 12;

const TEST_NODE: u16 = 0;
const TEST_ANY: u16 = 1;
const TEST_NAME: u16 = 2;
const TEST_TEXT: u16 = 3;
const TEST_COMMENT: u16 = 4;
const TEST_INSTRUCTION: u16 = 5;
const TEST_TARGET: u16 = 6;

impl<'a> Query<'a> {
    /// An expression cell.
    ///
    /// # Panics
    /// If the cell is not an expression (a damaged index).
    #[inline]
    pub fn expr(&self, id: ExprId) -> Expr {
        let cell = &self.cells[id as usize];
        match cell.tag {
            TAG_OR => Expr::Or(cell.x, cell.y),
            TAG_AND => Expr::And(cell.x, cell.y),
            TAG_COMPARE => Expr::Compare(CompareOp::from_u8(cell.detail), cell.x, cell.y),
            TAG_ARITHMETIC => Expr::Arithmetic(ArithmeticOp::from_u8(cell.detail), cell.x, cell.y),
            TAG_NEGATE => Expr::Negate(cell.x),
            TAG_UNION => Expr::Union(cell.x, cell.y),
            TAG_STRING => Expr::StringConstant(cell.x),
            TAG_NUMBER => Expr::NumberConstant(cell.x),
            TAG_CALL => Expr::Call(Function::from_u8(cell.detail), cell.x),
            TAG_PATH => Expr::Path(
                match cell.detail {
                    0 => PathStart::Root,
                    1 => PathStart::Context,
                    _ => PathStart::Expr(cell.y),
                },
                cell.x,
            ),
            TAG_FILTER => Expr::Filter(cell.x, cell.y),
            tag => panic!("cell {id} has tag {tag}, not an expression"),
        }
    }

    /// A step cell.
    ///
    /// # Panics
    /// If the cell is not a step (a damaged index).
    #[inline]
    pub fn step(&self, id: StepId) -> Step {
        let cell = &self.cells[id as usize];
        assert_eq!(cell.tag, TAG_STEP, "cell {id} is not a step");
        let test = match cell.extra {
            TEST_NODE => NodeTest::Node,
            TEST_ANY => NodeTest::Any,
            TEST_NAME => NodeTest::Name(cell.x),
            TEST_TEXT => NodeTest::Text,
            TEST_COMMENT => NodeTest::Comment,
            TEST_INSTRUCTION => NodeTest::ProcessingInstruction,
            _ => NodeTest::ProcessingInstructionNamed(cell.x),
        };
        Step { axis: Axis::from_u8(cell.detail), test, predicates: cell.y, next: cell.z }
    }

    /// The steps from `first` on.
    pub fn steps(&self, first: StepId) -> impl Iterator<Item = Step> + use<'a> {
        let query = *self;
        let mut at = first;
        std::iter::from_fn(move || {
            (at != NONE).then(|| {
                let step = query.step(at);
                at = step.next;
                step
            })
        })
    }

    /// Copies the cells that the expression consists of, in their order, into `into`, which is emptied before, and
    /// numbers them from 0 there; returns the root.
    pub fn extract(&self, into: &mut Vec<Cell>) -> ExprId {
        let mut ids = SmallVec::<[u32; 64]>::from_slice(&[self.root]);
        let mut at = 0;
        while let Some(id) = ids.get(at) {
            at += 1;
            self.cells[*id as usize].map_references(|reference| {
                ids.push(reference);
                reference
            });
        }
        ids.sort_unstable();
        ids.dedup();
        into.clear();
        into.extend(ids.iter().map(|id| {
            self.cells[*id as usize].map_references(|reference| ids.partition_point(|known| *known < reference) as u32)
        }));
        // Children come before their parents.
        into.len() as ExprId - 1
    }

    /// A cell as a step, if it is one.
    pub fn as_step(&self, id: u32) -> Option<Step> {
        (self.cells[id as usize].tag == TAG_STEP).then(|| self.step(id))
    }

    /// Whether a cell is a filter expression or a path that starts from an expression.
    pub fn is_filter(&self, id: u32) -> bool {
        let cell = &self.cells[id as usize];
        cell.tag == TAG_FILTER || (cell.tag == TAG_PATH && cell.detail == 2)
    }

    /// The function a cell calls, if it is a call.
    pub fn call(&self, id: ExprId) -> Option<Function> {
        let cell = &self.cells[id as usize];
        (cell.tag == TAG_CALL).then(|| Function::from_u8(cell.detail))
    }

    /// The members of a list.
    pub fn list(&self, first: ListId) -> impl Iterator<Item = ExprId> + use<'a> {
        let cells = self.cells;
        let mut at = first;
        std::iter::from_fn(move || {
            (at != NONE).then(|| {
                let cell = &cells[at as usize];
                at = cell.y;
                cell.x
            })
        })
    }
}

/// Builds the cells of one expression.
#[derive(Clone, Debug, Default)]
pub struct QueryBuilder {
    /// The cells so far.
    pub cells: Vec<Cell>,
    /// The constants so far; a slot is an index here.
    pub constants: Vec<Constant>,
}

impl QueryBuilder {
    fn push(&mut self, tag: u8, detail: u8, extra: u16, x: u32, y: u32, z: u32) -> u32 {
        self.cells.push(Cell { tag, detail, extra, x, y, z });
        (self.cells.len() - 1) as u32
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.constants.clear();
    }

    /// Adds an expression.
    pub fn expr(&mut self, expr: Expr) -> ExprId {
        match expr {
            Expr::Or(a, b) => self.push(TAG_OR, 0, 0, a, b, 0),
            Expr::And(a, b) => self.push(TAG_AND, 0, 0, a, b, 0),
            Expr::Compare(op, a, b) => self.push(TAG_COMPARE, op as u8, 0, a, b, 0),
            Expr::Arithmetic(op, a, b) => self.push(TAG_ARITHMETIC, op as u8, 0, a, b, 0),
            Expr::Negate(a) => self.push(TAG_NEGATE, 0, 0, a, 0, 0),
            Expr::Union(a, b) => self.push(TAG_UNION, 0, 0, a, b, 0),
            Expr::StringConstant(slot) => self.push(TAG_STRING, 0, 0, slot, 0, 0),
            Expr::NumberConstant(slot) => self.push(TAG_NUMBER, 0, 0, slot, 0, 0),
            Expr::Call(function, arguments) => self.push(TAG_CALL, function as u8, 0, arguments, 0, 0),
            Expr::Path(start, first) => match start {
                PathStart::Root => self.push(TAG_PATH, 0, 0, first, 0, 0),
                PathStart::Context => self.push(TAG_PATH, 1, 0, first, 0, 0),
                PathStart::Expr(primary) => self.push(TAG_PATH, 2, 0, first, primary, 0),
            },
            Expr::Filter(primary, predicates) => self.push(TAG_FILTER, 0, 0, primary, predicates, 0),
        }
    }

    /// Adds a string constant.
    pub fn string(&mut self, value: &str) -> ExprId {
        self.constants.push(Constant::String(value.into()));
        self.expr(Expr::StringConstant((self.constants.len() - 1) as u32))
    }

    /// Adds a number constant.
    pub fn number(&mut self, value: f64) -> ExprId {
        self.constants.push(Constant::Number(value));
        self.expr(Expr::NumberConstant((self.constants.len() - 1) as u32))
    }

    /// Adds a step; chains are built from their last step backwards.
    pub fn step(&mut self, step: Step) -> StepId {
        let (kind, symbol) = match step.test {
            NodeTest::Node => (TEST_NODE, 0),
            NodeTest::Any => (TEST_ANY, 0),
            NodeTest::Name(symbol) => (TEST_NAME, symbol),
            NodeTest::Text => (TEST_TEXT, 0),
            NodeTest::Comment => (TEST_COMMENT, 0),
            NodeTest::ProcessingInstruction => (TEST_INSTRUCTION, 0),
            NodeTest::ProcessingInstructionNamed(symbol) => (TEST_TARGET, symbol),
        };
        self.push(TAG_STEP, step.axis as u8, kind, symbol, step.predicates, step.next)
    }

    /// Adds a list of expressions.
    pub fn list(&mut self, members: &[ExprId]) -> ListId {
        members.iter().rev().fold(NONE, |next, member| self.push(TAG_LIST, 0, 0, *member, next, 0))
    }

    /// The finished expression.
    pub fn query(&self, root: ExprId) -> Query<'_> {
        Query { cells: &self.cells, root }
    }
}
