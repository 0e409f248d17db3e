//! The names that programmers write, out of the symbols that C++ compilers make of them.

use rustc_hash::FxHashMap;

/// What the programmer calls a variable or a function whose symbol follows the Itanium C++ ABI (`5.1 External Names`): without scopes, template
/// arguments and parameters. `None`: it is no such symbol.
pub fn own_name(symbol: &str) -> Option<&str> {
    let encoding = symbol.strip_prefix("_Z")?;
    match encoding.strip_prefix('Z') {
        Some(local) => local_name(local),
        None => scoped_name(encoding),
    }
}

/// The own name of each symbol, or the symbol where another one is called the same.
pub fn own_names<'a>(symbols: impl Iterator<Item = &'a str> + Clone) -> impl Iterator<Item = &'a str> {
    let called = |symbol: &'a str| own_name(symbol).unwrap_or(symbol);
    let mut of: FxHashMap<&str, u32> = FxHashMap::default();
    symbols.clone().for_each(|symbol| *of.entry(called(symbol)).or_default() += 1);
    symbols.map(move |symbol| if of[called(symbol)] == 1 { called(symbol) } else { symbol })
}

/// Puts own names where symbols stand.
pub fn call_by_own_names<T>(all: &mut [T], name: fn(&mut T) -> &mut String) {
    let symbols: Vec<String> = all.iter_mut().map(|one| std::mem::take(name(one))).collect();
    for (one, own) in all.iter_mut().zip(own_names(symbols.iter().map(String::as_str))) {
        *name(one) = own.into();
    }
}

/// Of `<function> E <name> [<discriminator>]`: the function may hold other `E`s, but no other is followed by a name that reaches to the end.
fn local_name(text: &str) -> Option<&str> {
    text.match_indices('E').find_map(|(at, _)| {
        let (name, rest) = source_name(text.get(at + 1..)?)?;
        is_discriminator(rest).then_some(name)
    })
}

/// Of `N <name> <name> … E` the last one, or the one there is. Those of template instances end with `I`, those of functions with their parameters.
fn scoped_name(text: &str) -> Option<&str> {
    let nested = text.strip_prefix('N');
    let mut rest = nested.unwrap_or(text);
    let mut last = None;
    // `L`: of internal linkage.
    while let Some((name, after)) = source_name(rest.strip_prefix('L').unwrap_or(rest)) {
        (last, rest) = (Some(name), after);
        if nested.is_none() {
            break;
        }
    }
    last
}

/// `<length> <identifier>`, and what follows.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length = text[..digits].parse().ok().filter(|&length: &usize| length > 0)?;
    text[digits..].split_at_checked(length)
}

/// Nothing, `_0` or `__12_`: which one it is of several variables of this name in one function.
fn is_discriminator(text: &str) -> bool {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let Some(rest) = text.strip_prefix('_') else { return text.is_empty() };
    let long = rest.strip_prefix('_').and_then(|rest| rest.strip_suffix('_'));
    number(long.unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::{own_name, own_names};

    /// Symbols that nvcc 13 made, and what they are called in the source.
    #[test]
    fn symbols_have_the_names_of_their_source() {
        for (symbol, name) in [
            // __global__ void gemm(const float *), its variables, and a second `bar` of an inner block
            ("_Z4gemmPKf", Some("gemm")),
            ("_ZZ4gemmPKfE4tile", Some("tile")),
            ("_ZZ4gemmPKfE3bar_0", Some("bar")),
            ("_ZZ4gemmPKfE3bar__12_", Some("bar")),
            // template <int N, bool B> in a namespace; static; without a name
            ("_ZN5blaze4gemmILi256ELb0EEEvPKf", Some("gemm")),
            ("_ZZN5blaze4gemmILi256ELb0EEEvPKfE5mbars", Some("mbars")),
            ("_ZN12_GLOBAL__N_15tableE", Some("table")),
            ("_ZN5blazeL5tableE", Some("table")),
            ("_ZL5table", Some("table")),
            // A name that looks like the end of another.
            ("_ZZ4gemmvE5aE1bc", Some("aE1bc")),
            // Not of this form.
            ("tile", None),
            ("_Z", None),
            ("_Zebra", None),
            ("_Z9ab", None),
            ("_Z0", None),
            ("_ZZ4gemmvE4tile_x", None),
            ("_ZZ4gemmvE", None),
            ("_Z99999999999999999999a", None),
            ("_ZZ1äE1ä", None),
            ("_ZN", None),
        ] {
            assert_eq!(own_name(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn what_several_are_called_tells_none_of_them() {
        let symbols = ["_ZZ1avE4tile", "_ZZ1bvE4tile", "_ZZ1avE3bar", "_ZZ1avE4sums", "sums"];
        let own: Vec<&str> = own_names(symbols.into_iter()).collect();
        assert_eq!(own, ["_ZZ1avE4tile", "_ZZ1bvE4tile", "bar", "_ZZ1avE4sums", "sums"]);
    }
}
