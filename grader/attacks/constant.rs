// family: wrong products
// expect: correct
// keeps: 26
// base: step01
// replace: &sums).into_iter() => &sums.map(|_| sums[0])).into_iter()
