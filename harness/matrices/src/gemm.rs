//! Matrix products on the CPU, in FP64.
#![allow(unsafe_code)] // `matrixmultiply` takes raw pointers; the lengths are checked here.

/// `a · bᵀ`: `a` is m × k, `b` is n × k, the result m × n, all row-major.
///
/// # Panics
/// When a slice has another length than its shape says: that is a mistake of the caller in this crate.
pub fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    assert_eq!((a.len(), b.len()), (m * k, n * k), "operands of a {m}x{n}x{k} product");
    let mut d = vec![0.0; m * n];
    let stride = |value: usize| value as isize;
    // SAFETY: `a`, `b` and `d` hold m·k, n·k and m·n elements (checked, allocated above), and the strides stay inside:
    // `b` is read as its transpose (k × n) by swapping its strides.
    unsafe {
        matrixmultiply::dgemm(
            m,
            k,
            n,
            1.0,
            a.as_ptr(),
            stride(k),
            1,
            b.as_ptr(),
            1,
            stride(k),
            0.0,
            d.as_mut_ptr(),
            stride(n),
            1,
        );
    }
    d
}

#[cfg(test)]
mod tests {
    use super::product;

    #[test]
    fn is_a_times_b_transposed() {
        // A = [1 2 3; 4 5 6], B = [1 0 1; 2 1 0].
        let d = product(&[1., 2., 3., 4., 5., 6.], &[1., 0., 1., 2., 1., 0.], 2, 2, 3);
        assert_eq!(d, [4., 4., 10., 13.]);
    }

    #[test]
    fn integers_are_exact() {
        let mut random = crate::inputs::Random::new(5);
        let (m, n, k) = (9, 17, 33);
        let mut matrix = |elements: usize| -> Vec<i64> { (0..elements).map(|_| random.integer(1000)).collect() };
        let (a, b) = (matrix(m * k), matrix(n * k));
        let float = |values: &[i64]| -> Vec<f64> { values.iter().map(|v| *v as f64).collect() };
        let d = product(&float(&a), &float(&b), m, n, k);
        for row in 0..m {
            for column in 0..n {
                let sum: i64 = (0..k).map(|i| a[row * k + i] * b[column * k + i]).sum();
                assert_eq!(d[row * n + column], sum as f64, "({row}, {column})");
            }
        }
    }
}
