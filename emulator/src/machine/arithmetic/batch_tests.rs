//! MMAs that wait give what they give one by one.

use super::*;
use crate::machine::arithmetic::exact::tests::Random;
use crate::machine::arithmetic::formats::Format;
use crate::machine::arithmetic::operand::Operand;
use crate::machine::mma::Source;
use crate::machine::tensor_memory::{COLUMNS, SharedDescriptor};
use crate::program::kind::Kind;
use half::f16;
use smallvec::smallvec;

impl AsMut<TensorMemory> for TensorMemory {
    fn as_mut(&mut self) -> &mut TensorMemory {
        self
    }
}

/// Two CTAs, computed at once: for each cell its value, and whether it is defined.
struct Model(Vec<Vec<(u32, bool)>>);

impl Model {
    fn mma(&mut self, numerics: Numerics, m: &PendingMma, operands: &Operands) {
        let (i, layout) = (&m.descriptor, m.descriptor.layout(m.group.len(), m.lane));
        let step = i.step(m.accumulate, m.scale);
        for (place, &c) in m.group.iter().enumerate() {
            let (a, b) = (&operands.a[place], &operands.b);
            let cells = &mut self.0[c];
            let at = |row: usize, n: usize| {
                let (lane, column) = layout.cell(row as u32, n as u32, i.n);
                (lane, (lane * COLUMNS + m.column + column) as usize)
            };
            let (rows, columns) = (a.bits.len(), i.n as usize);
            let mut d: Vec<u32> = (0..rows * columns).map(|n| cells[at(n / columns, n % columns).1].0).collect();
            step.run(numerics, a.bits.as_flattened(), b.bits.as_flattened(), &mut d).unwrap();
            for (n, value) in d.into_iter().enumerate() {
                let (lane, cell) = at(n / columns, n % columns);
                if m.disabled[place] >> lane & 1 == 0 {
                    let defined = a.is_defined(n / columns) && b.is_defined(n % columns);
                    cells[cell] = (value, defined && (!m.accumulate || cells[cell].1));
                }
            }
        }
    }
}

/// Random MMAs of one CTA, the other or both: on one accumulator after the other, interleaved or overlapping; that
/// overwrite in between, scale, leave lanes out, accumulate in FP16, or have undefined operands; and somebody looks now and
/// then. Values and definedness are those of MMAs that are computed at once.
#[test]
fn waiting_changes_nothing() {
    let mut random = Random(23);
    let (mut joined, mut looks) = (0, 0);
    for case in 0..60 {
        let numerics = if case % 2 == 0 { Numerics::Fast } else { Numerics::Exact };
        let mut ctas = [TensorMemory::new(), TensorMemory::new()];
        for tensor in &mut ctas {
            for cell in 0..LANES * COLUMNS {
                let defined = case % 3 != 0 || !random.next().is_multiple_of(50);
                tensor.set(cell / COLUMNS, cell % COLUMNS, (random.next() as i16 as f32 / 64.0).to_bits(), defined);
            }
        }
        let all = |ctas: &[TensorMemory]| -> Vec<Vec<(u32, bool)>> {
            ctas.iter().map(|t| (0..LANES * COLUMNS).map(|at| t.get(at / COLUMNS, at % COLUMNS)).collect()).collect()
        };
        let mut model = Model(all(&ctas));
        let mut batches = Batches::default();
        let mut last: Option<PendingMma> = None;
        for _ in 0..24 {
            let mut one = |n: u64| random.next() % n;
            // Often the same accumulator again, or the one beside it.
            let again = last.take().filter(|_| one(4) != 0);
            let (pair, m) = [(false, 64), (false, 128), (true, 128), (true, 256)][one(4) as usize];
            let (n, d_f32) = (16 * (1 + one(5) as u32), one(4) != 0);
            let bits = (m / 16) << 24 | (n / 8) << 17 | u32::from(d_f32) << 4 | u32::from(one(8) == 7) << 13;
            let bf = if d_f32 && one(3) == 0 { 1 << 7 | 1 << 10 } else { 0 };
            let descriptor =
                InstructionDescriptor::decode(bits | bf, (Kind::F16, false), 0, if pair { 2 } else { 1 }).unwrap();
            let group = if pair { smallvec![0, 1] } else { smallvec![one(2) as usize] };
            let disabled = if one(3) == 0 { u128::from(one(1 << 60)) << one(68) } else { 0 };
            let none = SharedDescriptor::default();
            let fresh = PendingMma {
                w: 0,
                site: 0,
                descriptor,
                group,
                a: Source::Shared(none),
                b: none,
                lane: if m == 64 && !pair { 16 * one(2) as u32 } else { 0 },
                column: 8 * one(20) as u32,
                accumulate: true,
                scale: 0,
                disabled: [disabled, disabled >> 1],
                operands: None,
                event: None,
                origin: 0,
                read_late: false,
                factors: None,
            };
            let mut mma = again.unwrap_or(fresh);
            if one(6) == 0 {
                mma.column = (mma.column + [8, 80][one(2) as usize]) % 400;
            }
            mma.accumulate = one(7) != 0;
            mma.scale = if one(7) == 0 { one(16) as u32 } else { 0 };
            let bf = mma.descriptor.a == Format::Bf16;
            let mut operand = |rows: u32| {
                let holes = random.next().is_multiple_of(4);
                let mut element = || {
                    let value = f16::from_f32(random.next() as i16 as f32 / 8192.0).to_bits();
                    // An FP16 number's bits are a BF16 number's, too.
                    if bf { value ^ 0x0400 } else { value }
                };
                let bits = (0..rows).map(|_| std::array::from_fn(|_| element())).collect();
                let defined =
                    if holes { (0..rows).map(|_| !random.next().is_multiple_of(9)).collect() } else { vec![] };
                Operand { bits, defined }
            };
            let rows = mma.descriptor.m / mma.group.len() as u32;
            let (a, b) = ([operand(rows), operand(rows)], operand(mma.descriptor.n));
            let copy = |o: &Operand| Operand { bits: o.bits.clone(), defined: o.defined.clone() };
            let operands = Operands { a: [copy(&a[0]), copy(&a[1])], b: copy(&b), ..Default::default() };
            model.mma(numerics, &mma, &operands);
            batches.add(numerics, &mma, operands, &mut ctas, &mut Prefetches::default());
            joined += u32::from(batches.waiting.iter().any(|batch| batch.steps.len() > 1));
            // Who looks at definedness need not settle.
            for (tensor, model) in ctas.iter().zip(&model.0) {
                for at in 0..LANES * COLUMNS {
                    let defined = tensor.defined_lanes(at % COLUMNS) >> (at / COLUMNS) & 1 == 1;
                    assert_eq!(
                        defined,
                        model[at as usize].1,
                        "case {case}, lane {}, column {}",
                        at / COLUMNS,
                        at % COLUMNS
                    );
                }
            }
            if random.next().is_multiple_of(6) {
                looks += 1;
                batches.settle(numerics, &mut ctas, &mut Prefetches::default());
                assert!(all(&ctas) == model.0, "case {case}, {numerics:?}: cells differ when somebody looks");
            }
            last = Some(mma);
        }
        batches.settle(numerics, &mut ctas, &mut Prefetches::default());
        assert!(all(&ctas) == model.0, "case {case}, {numerics:?}: cells differ at the end");
    }
    assert!(joined > 200 && looks > 100, "{joined} MMAs joined others, {looks} looks: too few to mean something");
}

/// A cell without a defined value says why.
#[test]
fn undefined_results_have_an_origin() {
    let none = SharedDescriptor::default();
    let descriptor = InstructionDescriptor::decode(0x0808_0010, (Kind::F16, false), 0, 1).unwrap();
    let mut mma = PendingMma {
        w: 0,
        site: 0,
        descriptor,
        group: smallvec![0],
        a: Source::Shared(none),
        b: none,
        lane: 0,
        column: 64,
        accumulate: false,
        scale: 0,
        disabled: [0; 2],
        operands: None,
        event: None,
        origin: 3,
        read_late: false,
        factors: None,
    };
    let operand = |rows: usize, hole: usize| {
        let defined = (0..rows).map(|row| row != hole).collect();
        Operand { bits: vec![[0x3c00; 16]; rows], defined }
    };
    let mut ctas = [TensorMemory::new()];
    let mut batches = Batches::default();
    let operands = Operands { a: [operand(128, 1000), Operand::default()], b: operand(32, 5), ..Default::default() };
    batches.add(Numerics::Fast, &mma, operands, &mut ctas, &mut Prefetches::default());
    assert_eq!((ctas[0].origin(64 + 5), ctas[0].origin(64 + 6)), (3, 0));
    // What is added to it stays undefined, for the first reason.
    (mma.accumulate, mma.origin) = (true, 4);
    let operands = Operands { a: [operand(128, 1000), Operand::default()], b: operand(32, 1000), ..Default::default() };
    batches.add(Numerics::Fast, &mma, operands, &mut ctas, &mut Prefetches::default());
    assert_eq!(
        (ctas[0].origin(64 + 5), ctas[0].defined_lanes(64 + 5), ctas[0].defined_lanes(64 + 6)),
        (3, 0, u128::MAX)
    );
}
