//! The function that a value comes from, among functions that call each other.

/// Share of the largest part that a callee must have to be named instead of its callers.
const MOST_OF_IT: f64 = 0.7;

/// Of the functions with most of the value the innermost, which has the least of everything else; with the next one, which calls it.
///
/// `value`: the part of a function that matters, and all that it has, with its callees. If some of those with most of it are preferred, only these count.
/// `None`: no function has a part above 0.
pub fn innermost<T: Copy>(
    functions: &[T],
    value: impl Fn(&T) -> [f64; 2],
    is_preferred: impl Fn(&T) -> bool,
) -> Option<(T, Option<T>)> {
    let parts = functions.iter().map(|one| value(one)[0]);
    let most = parts.max_by(f64::total_cmp).filter(|most| *most > 0.0)? * MOST_OF_IT;
    let mut with_most: Vec<T> = functions.iter().filter(|one| value(one)[0] >= most).copied().collect();
    if with_most.iter().any(&is_preferred) {
        with_most.retain(is_preferred);
    }
    // The sort is stable.
    with_most.sort_by(|one, other| value(one)[1].total_cmp(&value(other)[1]));
    Some((*with_most.first()?, with_most.get(1).copied()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    /// Name, part, and all.
    type Function = (&'static str, f64, f64);

    fn of(functions: &[Function], preferred: &[&str]) -> Option<(&'static str, Option<&'static str>)> {
        let found = innermost(functions, |one| [one.1, one.2], |one| preferred.contains(&one.0))?;
        Some((found.0.0, found.1.map(|caller| caller.0)))
    }

    #[test]
    fn the_innermost_with_most_of_it_is_named_with_its_caller() {
        let functions =
            [("main", 21.0, 71.0), ("serve", 20.0, 50.0), ("price", 18.0, 28.0), ("log", 2.0, 3.0)];
        assert_eq!(of(&functions, &[]), Some(("price", Some("serve"))));
        assert_eq!(of(&functions, &["main"]), Some(("main", None)));
        assert_eq!(of(&functions, &["log"]), Some(("price", Some("serve"))), "it has too little");
        assert_eq!(of(&[("main", 0.0, 9.0)], &[]), None);
        assert_eq!(of(&[], &[]), None);
    }
}
