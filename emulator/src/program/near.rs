//! The name that was probably meant.

/// The candidate that the fewest changed characters lead to; `None`: none is near.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // One character in four, and one in short names.
    let most = (name.chars().count() / 4).max(1);
    let near = candidates.map(|candidate| (distance(name, candidate), candidate)).filter(|(d, _)| *d <= most);
    let alike = |other: &str| {
        let begin = name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        begin + name.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count()
    };
    near.min_by_key(|(d, other)| (*d, std::cmp::Reverse(alike(other)))).map(|(_, candidate)| candidate)
}

/// Characters that are put in, left out, replaced, or exchanged with their neighbour.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_near() {
        assert_eq!(distance("mbarrier", "mbarirer"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("sm_10a", ["sm_90a", "sm_100a"].into_iter()), Some("sm_100a"));
        assert_eq!(nearest("foo", ["sm_90a", "sm_100a"].into_iter()), None);
    }
}
