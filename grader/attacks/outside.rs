// family: wrong products
// expect: correct
// keeps: 22
// base: step01
// replace: gemm.d.at(row, column) => gemm.d.at(row + 1, column)
