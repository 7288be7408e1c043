//! The call graph: functions, the cost of their lines, and the cost of their calls.

use std::collections::{BTreeMap, HashMap};

/// A function.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub name: String,
    /// Source file, empty if not known.
    pub file: String,
    /// Path of the file with its code, empty if not known.
    pub object: String,
}

/// A function's costs, by event.
#[derive(Default)]
pub(super) struct Costs {
    /// By source file and line.
    pub own: BTreeMap<(String, u32), Vec<u64>>,
    /// By callee: the inclusive cost, and the line of a call.
    pub calls: BTreeMap<usize, (Vec<u64>, u32)>,
}

/// All functions.
#[derive(Default)]
pub(super) struct Graph {
    pub functions: Vec<Function>,
    pub costs: Vec<Costs>,
    by_number: HashMap<u64, usize>,
    by_name: HashMap<Function, usize>,
}

impl Graph {
    /// Returns the index of a function, by its number if it has one. The function's own file is known from where its costs are.
    pub fn function(&mut self, number: Option<u64>, function: Function, is_own: bool) -> usize {
        let next = self.functions.len();
        let place = match number {
            Some(number) => *self.by_number.entry(number).or_insert(next),
            None => *self.by_name.entry(function.clone()).or_insert(next),
        };
        if place == next {
            self.functions.push(function);
            self.costs.push(Costs::default());
        } else if is_own {
            self.functions[place] = function;
        }
        place
    }

    pub fn own(&mut self, function: usize, file: String, line: u32, costs: &[u64]) {
        add(self.costs[function].own.entry((file, line)).or_default(), costs);
    }

    pub fn call(&mut self, caller: usize, callee: usize, line: u32, costs: &[u64]) {
        let call = self.costs[caller].calls.entry(callee).or_insert((Vec::new(), line));
        add(&mut call.0, costs);
    }
}

fn add(sum: &mut Vec<u64>, costs: &[u64]) {
    sum.resize(sum.len().max(costs.len()), 0);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
}
