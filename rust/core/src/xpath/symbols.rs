//! Name tests as numbers.
//!
//! A subscription population has one table of [`NameTest`]s; expressions carry their numbers ([`Symbol`]). A document
//! has its own distinct names; [`DocumentSymbols`] says, once per document, which tests each of its names passes.

use crate::document::{Document, Name, is_same};
use foldhash::fast::FixedState;
use hashbrown::{Equivalent, HashMap};
use std::hash::{Hash, Hasher};

/// The number of a name test in a population's table.
pub type Symbol = u32;

/// No such symbol: the document's name occurs in no subscription.
pub const NO_SYMBOL: Symbol = u32::MAX;

/// A test on an expanded name (XPath 1.0 §2.3), or its namespace-blind extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameTest<'a> {
    /// `prefix:local` or `local`: namespace URI (empty for none) and local part.
    Expanded(&'a str, &'a str),
    /// A local part in any namespace (subscriptions with `ignore_namespaces`).
    Local(&'a str),
    /// `prefix:*`: any local part in this namespace.
    Namespace(&'a str),
}

impl NameTest<'_> {
    /// Kind number for hashing and storage: 0 expanded, 1 local, 2 namespace.
    pub fn kind(&self) -> u8 {
        match self {
            NameTest::Expanded(..) => 0,
            NameTest::Local(_) => 1,
            NameTest::Namespace(_) => 2,
        }
    }
}

/// Something that numbers name tests.
pub trait SymbolTable {
    /// The number of a test, adding it if new.
    fn intern(&mut self, test: NameTest<'_>) -> Symbol;
    /// The test behind a number.
    fn resolve(&self, symbol: Symbol) -> NameTest<'_>;
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnedTest {
    kind: u8,
    uri: Box<str>,
    local: Box<str>,
}

impl OwnedTest {
    fn borrow(&self) -> NameTest<'_> {
        match self.kind {
            0 => NameTest::Expanded(&self.uri, &self.local),
            1 => NameTest::Local(&self.local),
            _ => NameTest::Namespace(&self.uri),
        }
    }
}

/// The symbol table used while subscriptions are parsed.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    tests: Vec<OwnedTest>,
    numbers: HashMap<OwnedTest, Symbol, FixedState>,
    /// Bit set of the kinds that occur.
    kinds: u8,
}

impl Symbols {
    /// Number of distinct tests.
    pub fn len(&self) -> usize {
        self.tests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether there is any test of local parts only.
    pub fn has_local(&self) -> bool {
        self.kinds & 1 << 1 != 0
    }

    /// Whether there is any test of a whole namespace.
    pub fn has_namespace(&self) -> bool {
        self.kinds & 1 << 2 != 0
    }

    /// The number of a test, if it is in the table.
    pub fn find(&self, test: NameTest<'_>) -> Option<Symbol> {
        self.numbers.get(&Probe(test)).copied()
    }
}

/// A borrowed key: looking a test up allocates nothing.
struct Probe<'a>(NameTest<'a>);

impl Hash for Probe<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As the derived hash of `OwnedTest`.
        let (uri, local) = parts(self.0);
        self.0.kind().hash(state);
        uri.hash(state);
        local.hash(state);
    }
}

impl Equivalent<OwnedTest> for Probe<'_> {
    fn equivalent(&self, key: &OwnedTest) -> bool {
        let (uri, local) = parts(self.0);
        self.0.kind() == key.kind && is_same(local, &key.local) && is_same(uri, &key.uri)
    }
}

/// URI and local part of a test; the part it does not look at is empty.
pub fn parts<'a>(test: NameTest<'a>) -> (&'a str, &'a str) {
    match test {
        NameTest::Expanded(uri, local) => (uri, local),
        NameTest::Local(local) => ("", local),
        NameTest::Namespace(uri) => (uri, ""),
    }
}

impl SymbolTable for Symbols {
    fn intern(&mut self, test: NameTest<'_>) -> Symbol {
        if let Some(symbol) = self.find(test) {
            return symbol;
        }
        let (uri, local) = parts(test);
        let key = OwnedTest { kind: test.kind(), uri: uri.into(), local: local.into() };
        let symbol = self.tests.len() as Symbol;
        self.kinds |= 1 << key.kind;
        self.tests.push(key.clone());
        self.numbers.insert(key, symbol);
        symbol
    }

    fn resolve(&self, symbol: Symbol) -> NameTest<'_> {
        self.tests[symbol as usize].borrow()
    }
}

/// For each name of one document (by its number in [`Document::names`]), the tests of one population that it passes.
#[derive(Clone, Debug, Default)]
pub struct DocumentSymbols {
    /// Number of the [`NameTest::Expanded`] test, or [`NO_SYMBOL`].
    pub expanded: Vec<Symbol>,
    /// Number of the [`NameTest::Local`] test, or [`NO_SYMBOL`].
    pub local: Vec<Symbol>,
    /// Number of the [`NameTest::Namespace`] test, or [`NO_SYMBOL`].
    pub namespace: Vec<Symbol>,
    /// Whether any name passes a test that is not on its expanded name.
    loose: bool,
}

impl DocumentSymbols {
    /// Looks up every name of a document with `find`.
    pub fn new(document: &Document, find: impl Fn(NameTest<'_>) -> Option<Symbol>) -> Self {
        let mut symbols = DocumentSymbols::default();
        symbols.fill(document, find);
        symbols
    }

    /// As [`Self::new`], reusing the memory of an earlier document.
    pub fn fill(&mut self, document: &Document, find: impl Fn(NameTest<'_>) -> Option<Symbol>) {
        self.fill_by(document, |name| symbols_of(name, &find));
    }

    /// As [`Self::fill`] with the same `find` as for the documents before, whose names need not be looked up again.
    pub fn fill_remembering(
        &mut self,
        document: &Document,
        remembered: &mut RememberedSymbols,
        find: impl Fn(NameTest<'_>) -> Option<Symbol>,
    ) {
        self.fill_by(document, |name| remembered.symbols_of(name, &find));
    }

    #[inline]
    fn fill_by(&mut self, document: &Document, mut symbols_of: impl FnMut(&Name) -> [Symbol; 3]) {
        self.expanded.clear();
        self.local.clear();
        self.namespace.clear();
        for name in document.names() {
            let [expanded, local, namespace] = symbols_of(name);
            self.expanded.push(expanded);
            self.local.push(local);
            self.namespace.push(namespace);
        }
        self.loose = self.local.iter().chain(&self.namespace).any(|symbol| *symbol != NO_SYMBOL);
    }

    /// Whether a name passes this test only by its expanded name. (Tests of other kinds have numbers of their own, so
    /// this is false only where the document has names that pass such tests.)
    #[inline]
    pub fn is_expanded_only(&self, symbol: Symbol) -> bool {
        !self.loose || (!self.local.contains(&symbol) && !self.namespace.contains(&symbol))
    }

    /// Whether the document name number `name` passes the test `symbol`.
    #[inline]
    pub fn passes(&self, name: u32, symbol: Symbol) -> bool {
        let name = name as usize;
        self.expanded[name] == symbol || (self.loose && (self.local[name] == symbol || self.namespace[name] == symbol))
    }
}

/// The symbols of a name: of the tests on its expanded name, local part and namespace.
fn symbols_of(name: &Name, find: impl Fn(NameTest<'_>) -> Option<Symbol>) -> [Symbol; 3] {
    let tests =
        [NameTest::Expanded(&name.uri, &name.local), NameTest::Local(&name.local), NameTest::Namespace(&name.uri)];
    tests.map(|test| find(test).unwrap_or(NO_SYMBOL))
}

/// The symbols in one table of names met before. Documents read by one [`Parser`](crate::document::Parser) share their
/// names, so that a name is known by where it is.
#[derive(Debug, Default)]
pub struct RememberedSymbols {
    /// By address; a name displaces another, and is kept alive, so that its address stays its own. Empty until there is
    /// one.
    names: Vec<Option<(Name, [Symbol; 3])>>,
}

impl RememberedSymbols {
    /// Names remembered at most; a power of two.
    const NAMES: usize = 128;

    #[inline]
    fn symbols_of(&mut self, name: &Name, find: impl Fn(NameTest<'_>) -> Option<Symbol>) -> [Symbol; 3] {
        // A name takes 64 bytes, and those made one after the other are neighbours.
        let place = name.address() / 64 % RememberedSymbols::NAMES;
        if let Some(Some((known, symbols))) = self.names.get(place)
            && known.is_copy_of(name)
        {
            return *symbols;
        }
        let symbols = symbols_of(name, find);
        if self.names.is_empty() {
            self.names.resize(RememberedSymbols::NAMES, None);
        }
        self.names[place] = Some((name.clone(), symbols));
        symbols
    }

    /// Bytes in use, without the names, which documents share.
    pub fn memory_bytes(&self) -> usize {
        self.names.capacity() * size_of::<Option<(Name, [Symbol; 3])>>()
    }
}
