//! Rule: values are cloned.

use super::spent::{Code, Spent};
use super::{CodeRule, GainModel, Rule, at_least};
use crate::cost::Cost;
use crate::names::without_parameters;

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "clone",
        claim: "clones values (copies them with all that they hold)",
        pattern: "owned values are copied with all that they hold, where a reference might do",
        threshold: at_least(LEAST),
        remedy: "borrow (const T&, &str, &[T]), share (Rc, Arc), move, or take Cow; clone what is kept, not what is only looked at",
        bound: "cloning with the allocation and copying below it",
        source: "the Rust book, chapter 4: clone copies the data on the heap as well",
    };
    CodeRule {
        gain: GainModel::Lines { least: 0.8, most: 1.0, callers: 0.8 },
        ..CodeRule::new(rule, LEAST, find)
    }
}

fn find(code: &Code<'_, '_>) -> Spent {
    let copies = code.whose_name(|name| {
        let is_clone =
            name.ends_with("Clone>::clone") || name.starts_with("<alloc::") && name.ends_with("::to_vec");
        is_clone || copies_object(name)
    });
    let drops = code.whose_name(|name| name.starts_with("core::ptr::drop_in_place") || name.contains("::~"));
    let is_copy = |node: u32| copies[code.symbol(node).index()];
    let is_drop = |node: u32| drops[code.symbol(node).index()];
    let lines = code.lines_that_call(&code.below(is_copy));
    let cloned = code.below(|node| {
        is_copy(node) || is_drop(node) && code.calling_line(node).is_some_and(|line| lines.contains(&line))
    });
    // Other clones are dropped elsewhere; count at most as much time for them as for cloning.
    let dropped = code.below(is_drop);
    let both = code.common(&dropped, &cloned);
    let apart = dropped.cost.weight.saturating_sub(both.weight).min(cloned.cost.weight);
    let samples = dropped.cost.samples.saturating_sub(both.samples).min(cloned.cost.samples);
    cloned.with_elsewhere(Cost { weight: apart, samples })
}

/// Returns whether a C++ function copies an object of a class: `A::B::B(A::B const&)`. Strings do not count: they
/// have their own rules for copying.
fn copies_object(name: &str) -> bool {
    let head = without_parameters(name);
    let Some((class, own)) = head.rsplit_once("::") else { return false };
    let base = class.split('<').next().and_then(|class| class.rsplit("::").next());
    let is_constructor = base == Some(own) && !class.contains("basic_string<") && class != "std::string";
    let parameters = name[head.len()..].strip_prefix('(').and_then(|rest| rest.split_once(" const&)"));
    is_constructor && parameters.is_some_and(|(parameter, _)| parameter == class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_told_from_other_constructors() {
        for name in [
            "Customer::Customer(Customer const&)",
            "shop::Cart::Cart(shop::Cart const&)",
            "std::vector<int, std::allocator<int> >::vector(std::vector<int, std::allocator<int> > const&)",
        ] {
            assert!(copies_object(name), "{name}");
        }
        for name in [
            "Customer::Customer(Customer&&)",
            "Customer::Customer(int)",
            "Customer::~Customer()",
            "price(Customer const&)",
            "Cart::add(Customer const&)",
            "Cart::Cart(Customer const&)",
            "Cart::equals(Cart const&)",
        ] {
            assert!(!copies_object(name), "{name}");
        }
    }
}
