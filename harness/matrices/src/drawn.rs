//! Inputs of a seed with the D that they make, some of which are kept: who judges several kernels at one size asks for the same again.

use crate::inputs::{InputKind, Inputs};
use crate::problem::Problem;
use crate::reference::Reference;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are kept, at most.
const MOST: usize = 32 << 20;

/// The last ones asked for, the latest at the end.
#[derive(Default)]
struct Kept(VecDeque<(Inputs, Arc<Reference>)>);

static KEPT: Mutex<Kept> = Mutex::new(Kept(VecDeque::new()));

/// The inputs of this seed, and what D must be.
pub fn drawn(problem: Problem, kind: InputKind, seed: u64) -> (Inputs, Arc<Reference>) {
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept().again(problem, kind, seed);
    known.unwrap_or_else(|| {
        let inputs = Inputs::new(problem, kind, seed);
        let reference = Arc::new(Reference::new(&inputs));
        kept().keep((inputs.clone(), reference.clone()), MOST);
        (inputs, reference)
    })
}

impl Kept {
    fn again(&mut self, problem: Problem, kind: InputKind, seed: u64) -> Option<(Inputs, Arc<Reference>)> {
        let asked = (problem, kind, seed);
        let place = self.0.iter().position(|(inputs, _)| (inputs.problem, inputs.kind, inputs.seed) == asked)?;
        let known = self.0.remove(place)?;
        self.0.push_back(known.clone());
        Some(known)
    }

    /// Keeps these and, of the others, the latest that there is room for. Those that take all of it by themselves are not kept.
    fn keep(&mut self, drawn: (Inputs, Arc<Reference>), most: usize) {
        // Another thread may have drawn the same meanwhile.
        let Inputs { problem, kind, seed, .. } = drawn.0;
        if bytes(&drawn) > most || self.again(problem, kind, seed).is_some() {
            return;
        }
        self.0.push_back(drawn);
        let mut bytes: usize = self.0.iter().map(bytes).sum();
        while bytes > most
            && let Some(oldest) = self.0.pop_front()
        {
            bytes -= self::bytes(&oldest);
        }
    }
}

fn bytes((inputs, reference): &(Inputs, Arc<Reference>)) -> usize {
    let elements = inputs.a.len() + inputs.b.len();
    (size_of::<u16>() + size_of::<f64>()) * elements + size_of::<f64>() * reference.values.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(seed: u64) -> (Inputs, Arc<Reference>) {
        let inputs = Inputs::new(Problem::f16(8, 8, 16), InputKind::Normal, seed);
        let reference = Arc::new(Reference::new(&inputs));
        (inputs, reference)
    }

    #[test]
    fn what_is_kept_is_what_would_be_drawn() {
        for seed in [3, 4, 3] {
            let (inputs, reference) = drawn(Problem::f16(8, 8, 16), InputKind::Normal, seed);
            let (fresh, right) = made(seed);
            assert_eq!((inputs.a, inputs.b, &reference.values), (fresh.a, fresh.b, &right.values), "seed {seed}");
        }
    }

    #[test]
    fn the_latest_are_kept_as_far_as_there_is_room() {
        let mut kept = Kept::default();
        let each = bytes(&made(0));
        let has = |kept: &mut Kept, seed| kept.again(Problem::f16(8, 8, 16), InputKind::Normal, seed).is_some();
        for seed in 0..3 {
            kept.keep(made(seed), 3 * each);
        }
        // It was asked for, so that the oldest is now another one.
        assert!(has(&mut kept, 0));
        kept.keep(made(3), 3 * each);
        assert_eq!([0, 1, 2, 3].map(|seed| has(&mut kept, seed)), [true, false, true, true]);
        kept.keep(made(4), each - 1);
        assert_eq!([0, 2, 3, 4].map(|seed| has(&mut kept, seed)), [true, true, true, false]);
    }
}
