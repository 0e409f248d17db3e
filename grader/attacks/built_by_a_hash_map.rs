// family: chance
// expect: another-each-time
// says: no order of a `HashMap`
// base: step01
// replace: for pass in 0..BLK_M / ROWS_AT_ONCE { => for pass in (0..BLK_M / ROWS_AT_ONCE).collect::<std::collections::HashSet<u32>>() {
