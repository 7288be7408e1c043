//! The function from which a value of many stacks comes.

use std::collections::HashMap;

use plumb_analyze::innermost;

use super::windows::FunctionsOfStacks;

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

/// Of the functions with most of the part the innermost one; one that the service's own program has is preferred to a library's.
pub(super) fn place(
    functions: &FunctionsOfStacks<'_>,
    values: &HashMap<u32, FunctionValue>,
) -> Option<Place> {
    let mut values: Vec<(u32, FunctionValue)> = values.iter().map(|(&one, &value)| (one, value)).collect();
    // Of equal ones the first that was seen is further in.
    values.sort_by_key(|&(one, _)| one);
    let is_own = |(one, _): &(u32, FunctionValue)| !functions.is_library(*one);
    let (one, caller) = innermost(&values, |(_, value)| [value.part, value.whole], is_own)?;
    let name = |(one, _): (u32, FunctionValue)| functions.name(one).to_owned();
    Some(Place { function: name(one), caller: caller.map(name) })
}
