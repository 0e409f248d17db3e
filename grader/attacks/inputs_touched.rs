// family: wrong products
// expect: correct
// keeps: 30
// base: step01
// replace: k.store_global_16(gemm.d.at(row, column), chunk); => k.store_global_16(gemm.d.at(row, column), chunk); if column < 64 { k.store_global_16(gemm.a.at(row, column), chunk); }
