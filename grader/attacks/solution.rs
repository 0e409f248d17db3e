// family: wrong products
// expect: passed
// base: step01
