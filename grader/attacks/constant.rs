// family: wrong products
// expect: correct
// base: step01
// replace: &sums).into_iter() => &sums.map(|_| sums[0])).into_iter()
