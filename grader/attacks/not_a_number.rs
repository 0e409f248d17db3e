// family: wrong products
// expect: correct
// keeps: 26
// base: step01
// replace: &sums).into_iter() => &sums.map(|sum| (sum - sum) / (sum - sum))).into_iter()
