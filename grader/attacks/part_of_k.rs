// family: wrong products
// expect: correct
// keeps: 26
// base: step01
// replace: for step in 0..BLK_K / MMA_K { => for step in 0..BLK_K / MMA_K - 1 {
