//! What each form of each instruction does, one row a form: values from the text of the PTX ISA or worked out by hand, never by
//! the emulator itself. Forms that only order or wait have rows that find something when the form is left out.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../ptx/tests/ptxas/mod.rs"]
mod ptxas;

mod async_store;
mod atomics;
mod barriers;
mod carries;
mod clusters;
mod comparisons;
mod control;
mod conversions;
mod counts;
mod coverage;
mod discarded;
mod floats;
mod formats;
mod four_rows;
mod integers;
mod kinds;
mod lanes;
mod matrices;
mod mbarriers;
mod memory;
mod mma;
mod narrow;
mod rare;
mod refusals;
mod row;
mod tensor;
mod tensor_copy;
mod tensor_maps;
mod tma;
mod tma_layout;
mod tma_rounding;
mod vectors;
mod warp_mma;
mod warp_mma_kinds;
mod wgmma;
mod wgmma_kinds;
mod wide_mma;
mod words;

use row::Row;

/// Every table.
const TABLES: &[fn() -> Vec<Row>] = &[
    async_store::rows,
    atomics::rows,
    barriers::rows,
    carries::rows,
    clusters::rows,
    comparisons::rows,
    control::rows,
    counts::rows,
    conversions::rows,
    discarded::rows,
    floats::rows,
    four_rows::rows,
    integers::rows,
    kinds::rows,
    lanes::rows,
    matrices::rows,
    mbarriers::rows,
    memory::rows,
    mma::rows,
    narrow::rows,
    rare::rows,
    tensor::rows,
    tensor_copy::rows,
    tensor_maps::rows,
    tma::rows,
    tma_layout::rows,
    tma_rounding::rows,
    vectors::rows,
    warp_mma::rows,
    warp_mma_kinds::rows,
    wgmma::rows,
    wide_mma::rows,
    wgmma_kinds::rows,
];

#[test]
fn every_form_has_a_row() {
    let rows: Vec<Row> = TABLES.iter().flat_map(|table| table()).collect();
    coverage::check(&rows);
}

/// ptxas takes the rows of these tables as they stand.
#[test]
fn ptxas_takes_the_rows() {
    for (name, rows) in [
        ("async_store", async_store::rows()),
        ("counts", counts::rows()),
        ("discarded", discarded::rows()),
        ("kinds", kinds::rows()),
        ("matrices", matrices::rows()),
        ("narrow", narrow::rows()),
        ("rare", rare::rows()),
        ("tensor_copy", tensor_copy::rows()),
        ("tensor_maps", tensor_maps::rows()),
        ("vectors", vectors::rows()),
        ("warp_mma", warp_mma::rows()),
        ("warp_mma_kinds", warp_mma_kinds::rows()),
        ("wide_mma", wide_mma::rows()),
        ("wgmma_kinds", wgmma_kinds::rows()),
    ] {
        assert!(!rows.is_empty(), "{name}");
        let mut module = String::new();
        for (n, row) in rows.iter().enumerate() {
            let text = row.text().replace(", debug", "");
            let (header, entry) =
                text.trim_end_matches('\0').split_once(".visible .entry k(").expect("a row is one entry");
            module = if n == 0 { header.into() } else { module };
            module += &format!(".visible .entry k{n}({entry}");
        }
        ptxas::assemble(&format!("rows_of_{name}"), &module);
    }
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
