//! The function from which a value of many stacks comes.

use std::collections::HashMap;

use super::windows::FunctionsOfStacks;

/// Share of the value that the function must have.
const MOST_OF_IT: f64 = 0.7;

/// A function, and the next one that calls it.
pub(super) struct Place {
    pub function: String,
    pub caller: Option<String>,
}

/// The value of a function with its callees: the part that is looked for, and all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FunctionValue {
    pub part: f64,
    pub whole: f64,
}

/// Of the functions with most of the part the one with the least of the rest, which is the innermost; one that the service's own program has is preferred
/// to a library's.
pub(super) fn place(
    functions: &FunctionsOfStacks<'_>,
    values: &HashMap<u32, FunctionValue>,
) -> Option<Place> {
    let parts = values.values().map(|value| value.part);
    let most = parts.max_by(f64::total_cmp).filter(|most| *most > 0.0)? * MOST_OF_IT;
    let mut with_most: Vec<(u32, f64)> = values
        .iter()
        .filter(|(_, value)| value.part >= most)
        .map(|(&one, value)| (one, value.whole))
        .collect();
    if with_most.iter().any(|(one, _)| !functions.is_library(*one)) {
        with_most.retain(|(one, _)| !functions.is_library(*one));
    }
    // Of equal ones the first that was seen is further in.
    with_most.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
    let mut names = with_most.iter().map(|&(one, _)| functions.name(one).to_owned());
    Some(Place { function: names.next()?, caller: names.next() })
}
