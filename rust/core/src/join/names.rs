//! Names of parts that are the same in every population, whatever numbers the parts have there.

use super::compile::NO_PATH;
use super::parts::{DefinitionId, EdgeId, OperandId, QueryId, SourceId, SourceKind};
use super::population::Population;
use blake2::{Blake2b, Digest, digest::consts::U32};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A name: 256 bits of BLAKE2b over what the part is.
pub type Name = [u8; 32];

/// Names parts, each once.
pub struct Names<'p> {
    population: &'p Population,
    sources: HashMap<SourceId, Name, FixedState>,
    definitions: HashMap<DefinitionId, Name, FixedState>,
}

fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Name {
    let mut digest = Blake2b::<U32>::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

impl<'p> Names<'p> {
    /// Names of the parts of a population.
    pub fn new(population: &'p Population) -> Names<'p> {
        Names { population, sources: HashMap::default(), definitions: HashMap::default() }
    }

    /// The name of a source.
    pub fn source(&mut self, id: SourceId) -> Name {
        if let Some(known) = self.sources.get(&id) {
            return *known;
        }
        let population = self.population;
        let name = match &population.parts().sources[id].kind {
            SourceKind::Pattern { stream, path } => {
                let stream: &[&[u8]] = match stream {
                    Some(stream) => &[b"stream", stream.as_bytes()],
                    None => &[b"any"],
                };
                let path = population.paths().full_text(*path);
                digest(stream.iter().copied().chain([path.as_bytes()]))
            }
            SourceKind::Found(query) => {
                let query = self.query(*query);
                digest([b"found".as_slice(), &query])
            }
        };
        self.sources.insert(id, name);
        name
    }

    /// The name of a definition.
    pub fn definition(&mut self, id: DefinitionId) -> Name {
        if let Some(known) = self.definitions.get(&id) {
            return *known;
        }
        let population = self.population;
        let key = &population.parts().definitions[id].key;
        let source = self.source(key.source);
        let parent = key.parent.map_or([0; 32], |parent| self.definition(parent));
        let path = match population.parts().sources[key.source].kind {
            SourceKind::Pattern { .. } => population.paths().full_text(key.path),
            SourceKind::Found(_) if key.path == NO_PATH => "root".to_owned(),
            SourceKind::Found(_) => key.path.to_string(),
        };
        let name = digest([&source[..], &parent, path.as_bytes(), &key.copy.to_le_bytes()]);
        self.definitions.insert(id, name);
        name
    }

    /// The name of an operand.
    pub fn operand(&mut self, id: OperandId) -> Name {
        let operand = &self.population.parts().operands[id];
        let definition = self.definition(operand.definition);
        digest([&definition[..], format!("{:?}", operand.normal).as_bytes()])
    }

    fn edge(&mut self, id: EdgeId) -> Name {
        let edge = &self.population.parts().edges[id];
        let (left, right) = (self.operand(edge.left), self.operand(edge.right));
        digest([&left[..], &right])
    }

    fn query(&mut self, id: QueryId) -> Name {
        let key = &self.population.queries()[id].key;
        let mut edges: Vec<Name> = key.edges.iter().map(|edge| self.edge(*edge)).collect();
        edges.sort_unstable();
        let outputs: Vec<Name> = key
            .outputs
            .iter()
            .map(|output| {
                let name = self.definition(output.definition);
                digest([&[u8::from(output.is_left)][..], &name])
            })
            .collect();
        let form = format!("{:?} {}", key.kind, key.window);
        digest([form.as_bytes(), &edges.concat(), &outputs.concat()])
    }
}
