//! Memory accounting: what the bytes of a snapshot are for, and where they lie.

use super::snapshot::Snapshot;

/// Bytes of one snapshot.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Bytes of the images, by section (`trie_edges`, `columns`, ...), summed over segments.
    pub sections: Vec<(String, usize)>,
    /// Bytes of the images that are no section: headers and padding.
    pub layout: usize,
    /// Bytes of images that are memory-mapped files: pages that the system may drop, shared with other processes.
    pub mapped: usize,
    /// Bytes of images that lie on the heap.
    pub heap: usize,
    /// Bytes of the sets of removed subscriptions.
    pub tombstones: usize,
}

impl Memory {
    /// Accounts for a snapshot.
    pub fn of(snapshot: &Snapshot) -> Memory {
        let mut memory = Memory::default();
        for part in &snapshot.segments {
            let image = part.segment.image();
            let sizes = image.sizes();
            memory.layout += image.byte_count() - sizes.iter().map(|(_, bytes)| bytes).sum::<usize>();
            *if image.is_mapped() { &mut memory.mapped } else { &mut memory.heap } += image.byte_count();
            memory.tombstones += part.removed.memory_bytes();
            if memory.sections.is_empty() {
                memory.sections = sizes.iter().map(|(name, _)| (snake_case(name), 0)).collect();
            }
            for ((_, sum), (_, bytes)) in memory.sections.iter_mut().zip(&sizes) {
                *sum += bytes;
            }
        }
        memory
    }

    /// Bytes of all images.
    pub fn images(&self) -> usize {
        self.mapped + self.heap
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}
