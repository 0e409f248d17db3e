//! What each form of each instruction does, one row a form: values from the text of the PTX ISA or worked out by hand, never by
//! the emulator itself. Forms that only order or wait have rows that find something when the form is left out.

#[path = "../common/mod.rs"]
mod common;

mod atomics;
mod barriers;
mod clusters;
mod comparisons;
mod control;
mod conversions;
mod coverage;
mod floats;
mod integers;
mod lanes;
mod matrices;
mod mbarriers;
mod memory;
mod mma;
mod refusals;
mod row;
mod tensor;
mod tma;
mod tma_layout;

use row::Row;

/// Every table.
const TABLES: &[fn() -> Vec<Row>] = &[
    atomics::rows,
    barriers::rows,
    clusters::rows,
    comparisons::rows,
    control::rows,
    conversions::rows,
    floats::rows,
    integers::rows,
    lanes::rows,
    matrices::rows,
    mbarriers::rows,
    memory::rows,
    mma::rows,
    tensor::rows,
    tma::rows,
    tma_layout::rows,
];

#[test]
fn every_form_has_a_row() {
    let rows: Vec<Row> = TABLES.iter().flat_map(|table| table()).collect();
    coverage::check(&rows);
}
