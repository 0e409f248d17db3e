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
mod narrow;
mod refusals;
mod row;
mod tensor;
mod tensor_maps;
mod tma;
mod tma_layout;
mod warp_mma;
mod wgmma;

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
    narrow::rows,
    tensor::rows,
    tensor_maps::rows,
    tma::rows,
    tma_layout::rows,
    warp_mma::rows,
    wgmma::rows,
];

#[test]
fn every_form_has_a_row() {
    let rows: Vec<Row> = TABLES.iter().flat_map(|table| table()).collect();
    coverage::check(&rows);
}

/// A few rows of each table, as kernels, for the fuzzer to begin with (`emulator/fuzz`).
#[test]
#[ignore = "writes the fuzzer's seeds anew"]
fn write_the_seeds_of_the_fuzzer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/executor");
    for (n, table) in TABLES.iter().enumerate() {
        let rows = table();
        for row in rows.iter().step_by(rows.len().div_ceil(4).max(1)) {
            let name = format!("{folder}/table{n:02}-{}.ptx", row.opcodes().last().map_or("row", |o| o));
            std::fs::write(name.replace("::", "-"), row.text().trim_end_matches('\0')).expect("the folder exists");
        }
    }
}
