// family: wrong products
// expect: structure
// keeps: 70
// base: step04
