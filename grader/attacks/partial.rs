// family: wrong products
// expect: correct
// keeps: 26
// base: step01
// replace: k.store_global_16(gemm.d.at(row, column), chunk); => if column < 120 { k.store_global_16(gemm.d.at(row, column), chunk); }
