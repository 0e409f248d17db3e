//! The name that was probably meant.

/// Characters of a name that are compared.
const LETTERS: usize = 64;

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

/// Characters that are put in, left out, replaced, or exchanged with their neighbour. Many thousands are asked for on the way to one advice:
/// all of it lies on the stack.
pub fn distance(a: &str, b: &str) -> usize {
    let (mut a_letters, mut b_letters) = (['\0'; LETTERS], ['\0'; LETTERS]);
    let (a, b) = (letters(a, &mut a_letters), letters(b, &mut b_letters));
    // Of the first letters of `a`, and of one fewer, and of two, how far they are from the first ones of `b`.
    let (mut row, mut last, mut before) = ([0u8; LETTERS + 1], [0u8; LETTERS + 1], [0u8; LETTERS + 1]);
    for (place, from) in (0..).zip(&mut last) {
        *from = place;
    }
    for i in 0..a.len() {
        row[0] = last[0] + 1;
        for j in 0..b.len() {
            let other = u8::from(a[i] != b[j]);
            let mut least = (last[j + 1] + 1).min(row[j] + 1).min(last[j] + other);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        (before, last, row) = (last, row, before);
    }
    usize::from(last[b.len()])
}

/// The first characters of a text.
fn letters<'a>(text: &str, letters: &'a mut [char; LETTERS]) -> &'a [char] {
    let mut count = 0;
    for (letter, c) in letters.iter_mut().zip(text.chars()) {
        *letter = c;
        count += 1;
    }
    &letters[..count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_near() {
        assert_eq!(distance("mbarrier", "mbarirer"), 1);
        assert_eq!((distance("", "abc"), distance("abc", "")), (3, 3));
        assert_eq!(distance("kitten", "sitting"), 3);
        // Of longer names, the beginnings.
        assert_eq!(distance(&"a".repeat(70), &"b".repeat(80)), 64);
        assert_eq!(nearest("sm_10a", ["sm_90a", "sm_100a"].into_iter()), Some("sm_100a"));
        assert_eq!(nearest("foo", ["sm_90a", "sm_100a"].into_iter()), None);
    }
}
