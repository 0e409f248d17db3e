// family: wrong products
// expect: structure
// base: step04
