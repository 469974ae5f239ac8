//! Streams: the nodes that a path leads to from each binding of the variable it starts from.

use super::Operators;
use crate::paths::{Edge, EdgeKind, LinearPath};
use crate::xpath::ast as xpath;
use crate::xpath::symbols::{NameTest, SymbolTable, Symbols};
use crate::xquery::ast::{Expr, NodeTest, Path, Step};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Number of a stream.
pub type StreamId = u32;
/// Number of a linear path of the shared path matcher.
pub type PathId = u32;

/// Most edges that are traced back from a node: their set is one word.
const MAX_TRACED: usize = 62;

/// How the nodes of a stream are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// They are what the shared path matcher delivers for this path.
    Matched(PathId),
    /// The shared path matcher delivers this path's nodes; each belongs to the binding a fixed number of levels above.
    Climbed(PathId, u16),
    /// The shared path matcher delivers this path's nodes; each belongs to the bindings from which these edges lead to
    /// it. In documents that agree with the DTD that is the binding this many levels above, if the number is there.
    Traced(PathId, Box<[Edge]>, Option<u16>),
    /// The evaluator goes from each binding. No node is found unless this path, if there is one, leads to some.
    Navigated(Option<PathId>),
}

/// A stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The stream of the variable that the path starts from; none if it starts from the document.
    pub parent: Option<StreamId>,
    /// How many streams are above.
    pub level: u32,
    /// The path, from the document or from the context item.
    pub expr: Arc<Expr>,
    /// How its nodes are found.
    pub route: Route,
    /// The path from the document, if it is linear to here.
    pub linear: Option<LinearPath>,
}

impl Stream {
    /// The steps of its path.
    fn steps(&self) -> &[Step] {
        match &*self.expr {
            Expr::Path(path) => &path.steps,
            _ => &[],
        }
    }

    /// The path whose nodes have to be there for the stream to have any.
    pub fn necessary_path(&self) -> Option<PathId> {
        match self.route {
            Route::Matched(path) | Route::Climbed(path, _) | Route::Traced(path, ..) => Some(path),
            Route::Navigated(path) => path,
        }
    }
}

impl Operators {
    /// The stream of a path below another stream; its steps are axis steps whose predicates use no variables.
    pub fn intern_stream(&mut self, parent: Option<StreamId>, steps: &[Step]) -> StreamId {
        let hash = self.hasher.hash_one((parent, steps));
        let streams = &self.streams;
        let is_same = |id: &StreamId| {
            let known = &streams[*id as usize];
            known.parent == parent && known.steps() == steps
        };
        if let Some(id) = self.stream_numbers.find(hash, is_same) {
            return *id;
        }
        let start = if parent.is_none() { Expr::Root } else { Expr::Context };
        let expr = if steps.is_empty() { start } else { Expr::Path(Box::new(Path { start, steps: steps.to_vec() })) };
        let mut relative = LinearPath::default();
        let mut exact = true;
        for step in steps {
            exact &= push(&mut relative, step, &mut self.symbols);
        }
        exact &= relative.is_exact() && !relative.edges.is_empty();
        let base = match parent {
            None => Some(LinearPath::default()),
            Some(parent) => self.stream(parent).linear.clone(),
        };
        let whole = base.map(|mut base| {
            base.edges.extend(relative.edges.iter().copied());
            base
        });
        let path = match &whole {
            // A path that an automaton has to find is worth it only if it says something.
            Some(whole) if !whole.edges.is_empty() => Some(self.intern_path(whole)),
            _ => None,
        };
        let route = match (path, parent) {
            (Some(path), None) if exact => Route::Matched(path),
            (Some(path), Some(above)) if exact => {
                let steps = relative.edges.iter().filter(|edge| edge.kind() != EdgeKind::Gap).count();
                if steps == relative.edges.len() {
                    Route::Climbed(path, steps as u16)
                } else if relative.edges.len() <= MAX_TRACED {
                    let last = self.stream(above).linear.as_ref().and_then(|path| path.edges.last()).copied();
                    Route::Traced(path, relative.edges.as_slice().into(), self.levels(last, &relative.edges))
                } else {
                    Route::Navigated(Some(path))
                }
            }
            (path, _) => Route::Navigated(path),
        };
        let id = self.streams.len() as StreamId;
        self.streams.push(Stream {
            parent,
            level: parent.map_or(0, |parent| self.streams[parent as usize].level + 1),
            expr: Arc::new(expr),
            route,
            linear: whole.filter(|_| exact),
        });
        let (streams, hasher) = (&self.streams, &self.hasher);
        self.stream_numbers.insert_unique(hash, id, |id| {
            let known = &streams[*id as usize];
            hasher.hash_one((known.parent, known.steps()))
        });
        id
    }

    /// The number of levels that edges go down from an element of this name, if the DTD leaves one way for each gap.
    fn levels(&self, from: Option<Edge>, edges: &[Edge]) -> Option<u16> {
        let name = |edge: Option<Edge>| match self.symbols.resolve(edge?.symbol()?) {
            NameTest::Expanded("", local) => Some(local),
            _ => None,
        };
        let graph = self.graph.as_ref()?;
        let (mut from, mut levels, mut in_gap) = (from, 0, false);
        for edge in edges {
            match edge.kind() {
                EdgeKind::Gap => {
                    in_gap = true;
                    continue;
                }
                EdgeKind::Element if in_gap => levels += graph.only_way(name(from)?, name(Some(*edge))?)?,
                _ if in_gap => return None,
                _ => levels += 1,
            }
            in_gap = false;
            from = Some(*edge);
        }
        Some(levels)
    }

    fn intern_path(&mut self, path: &LinearPath) -> PathId {
        if let Some(id) = self.path_numbers.get(&path.edges[..]) {
            return *id;
        }
        let id = self.paths.len() as PathId;
        self.path_numbers.insert(path.edges.to_vec(), id);
        self.paths.push(path.clone());
        id
    }
}

/// Appends a step to a linear path; false if the path then says less than the step did.
fn push(path: &mut LinearPath, step: &Step, symbols: &mut Symbols) -> bool {
    let Step::Axis { axis, test, predicates } = step else {
        path.truncated = true;
        return false;
    };
    let name = |test: NameTest<'_>, symbols: &mut Symbols| xpath::NodeTest::Name(symbols.intern(test));
    let element_axis = *axis != xpath::Axis::Attribute;
    let test = match test {
        NodeTest::Node => xpath::NodeTest::Node,
        NodeTest::Any => xpath::NodeTest::Any,
        NodeTest::Name(wanted) => name(NameTest::Expanded(&wanted.uri, &wanted.local), symbols),
        NodeTest::Local(local) => name(NameTest::Local(local), symbols),
        NodeTest::Namespace(uri) => name(NameTest::Namespace(uri), symbols),
        NodeTest::Text => xpath::NodeTest::Text,
        NodeTest::Element(None) if element_axis => xpath::NodeTest::Any,
        NodeTest::Element(Some(wanted)) if element_axis => {
            name(NameTest::Expanded(&wanted.uri, &wanted.local), symbols)
        }
        _ => {
            path.truncated = true;
            return false;
        }
    };
    path.push(&xpath::Step { axis: *axis, test, predicates: xpath::NONE, next: xpath::NONE });
    predicates.is_empty()
}
