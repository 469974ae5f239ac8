//! Numbered things whose numbers are used again.

/// Items by number; the numbers of removed ones are given to the next.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds an item; gives its number.
    pub fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.items[number as usize] = Some(item);
                number
            }
            None => {
                self.items.push(Some(item));
                self.items.len() as u32 - 1
            }
        }
    }

    /// Takes an item out.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let item = self.items.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(item)
    }

    /// The item of a number, if it is there.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number as usize)?.as_ref()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// One more than the largest number in use.
    pub fn bound(&self) -> usize {
        self.items.len()
    }

    /// All, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.items.iter().enumerate().filter_map(|(number, item)| Some((number as u32, item.as_ref()?)))
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        self.items[number as usize].as_ref().expect("the number of an item that is there")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.items[number as usize].as_mut().expect("the number of an item that is there")
    }
}
