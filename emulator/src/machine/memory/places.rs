//! Things that come and go, each in a place of its own: numbers name them while they are there.

use std::ops::{Index, IndexMut};

/// What is over leaves its place to the next one.
#[derive(Debug)]
pub struct Places<T> {
    all: Vec<T>,
    free: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Takes it in; gives its number.
    pub fn put(&mut self, thing: T) -> usize {
        match self.free.pop() {
            Some(n) => {
                self.all[n] = thing;
                n
            }
            None => {
                self.all.push(thing);
                self.all.len() - 1
            }
        }
    }

    /// It is over: its number may be another one's.
    pub fn free(&mut self, n: usize) {
        self.free.push(n);
    }
}

impl<T> Index<usize> for Places<T> {
    type Output = T;

    fn index(&self, n: usize) -> &T {
        &self.all[n]
    }
}

impl<T> IndexMut<usize> for Places<T> {
    fn index_mut(&mut self, n: usize) -> &mut T {
        &mut self.all[n]
    }
}
