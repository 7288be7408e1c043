//! Writes a profile in callgrind's format.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use plumb_profile::{Id, Profile, StackId};

use crate::calls::{Call, Calls};
use crate::escape::escaped;

/// Writes, by event, the own cost of each line of each function, and the inclusive cost of each call. Inlined calls are calls.
///
/// Call counts are not known: the number of samples is written instead. A function that calls itself,
/// directly or not, counts only at its last call in a stack, so that no inclusive cost exceeds the total.
pub fn write<W: Write>(profile: &Profile, out: W) -> io::Result<()> {
    let mut costs = Costs::default();
    let mut sums: BTreeMap<Option<StackId>, Cost> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let cost = sums.entry(sample.stack).or_insert_with(|| Cost::of(profile.events.len()));
        cost.samples += 1;
        if let Some(value) = cost.values.get_mut(sample.event.index()) {
            *value = value.saturating_add(sample.weight);
        }
    }
    let mut total = Cost::of(profile.events.len());
    let calls = Calls::of(profile);
    for (stack, cost) in &sums {
        total.add(cost);
        costs.add(&calls.of_stack(*stack), cost);
    }
    let mut out = io::BufWriter::new(out);
    head(profile, &mut out)?;
    costs.write(&mut out)?;
    writeln!(out, "totals: {}", total.text())?;
    out.flush()
}

fn head(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# callgrind format\nversion: 1\ncreator: plumb {}", env!("CARGO_PKG_VERSION"))?;
    if !profile.meta.command.is_empty() {
        writeln!(out, "cmd: {}", clean(&profile.meta.command.join(" ")))?;
    }
    writeln!(out, "desc: Note: sampled; where callgrind has the number of calls there is that of samples")?;
    let text = |id| profile.strings.get(id);
    let names: Vec<String> =
        profile.events.rows().iter().map(|event| clean(text(event.name)).replace([' ', ':'], "_")).collect();
    for (event, name) in profile.events.rows().iter().zip(&names) {
        writeln!(out, "event: {name} : {} ({})", clean(text(event.name)), clean(text(event.unit)))?;
    }
    writeln!(out, "positions: line\nevents: {}\n", names.join(" "))
}

/// Returns the text on one line, as readers of the format display it.
fn clean(text: &str) -> String {
    escaped(text, |_, _| false).into_owned()
}

/// A cost by event, and the number of samples.
#[derive(Clone, Default)]
struct Cost {
    samples: u64,
    values: Vec<u64>,
}

impl Cost {
    fn of(events: usize) -> Self {
        Cost { samples: 0, values: vec![0; events] }
    }

    fn add(&mut self, other: &Cost) {
        self.samples += other.samples;
        self.values.resize(other.values.len(), 0);
        for (value, more) in self.values.iter_mut().zip(&other.values) {
            *value = value.saturating_add(*more);
        }
    }

    fn text(&self) -> String {
        self.values.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// The key of a function: the file with its code, its source file, its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Function {
    dso: String,
    file: String,
    name: String,
}

impl Function {
    fn of(call: &Call<'_>) -> Self {
        // Callgrind's own notation for unknown names.
        let or_unknown = |text: &str| if text.is_empty() { "???".into() } else { clean(text) };
        Function { dso: or_unknown(call.dso), file: or_unknown(call.file), name: clean(&call.name) }
    }
}

#[derive(Default)]
struct Spent {
    /// Own cost by line.
    own: BTreeMap<u32, Cost>,
    /// Inclusive cost by line of the call and callee.
    calls: BTreeMap<(u32, usize), Cost>,
}

#[derive(Default)]
struct Costs {
    list: Vec<(Function, Spent)>,
    known: HashMap<Function, usize>,
}

impl Costs {
    fn function(&mut self, call: &Call<'_>) -> usize {
        let function = Function::of(call);
        let next = self.list.len();
        let place = *self.known.entry(function.clone()).or_insert(next);
        if place == next {
            self.list.push((function, Spent::default()));
        }
        place
    }

    fn add(&mut self, stack: &[Call<'_>], cost: &Cost) {
        let places: Vec<(usize, u32)> = stack.iter().map(|call| (self.function(call), call.line)).collect();
        let mut seen = HashSet::new();
        for (depth, &(function, line)) in places.iter().enumerate().rev() {
            if !seen.insert(function) {
                continue;
            }
            let spent = &mut self.list[function].1;
            match places.get(depth + 1) {
                None => spent.own.entry(line).or_default().add(cost),
                Some(&(called, _)) => spent.calls.entry((line, called)).or_default().add(cost),
            }
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut names = Names { objects: HashMap::new(), files: HashMap::new(), functions: HashMap::new() };
        for (at, (function, spent)) in self.list.iter().enumerate() {
            writeln!(out, "ob={}", short(&mut names.objects, &function.dso, &function.dso))?;
            writeln!(out, "fl={}", short(&mut names.files, &function.file, &function.file))?;
            writeln!(out, "fn={}", short(&mut names.functions, &at, &function.name))?;
            for (line, cost) in &spent.own {
                writeln!(out, "{line} {}", cost.text())?;
            }
            for (&(line, called), cost) in &spent.calls {
                let callee = &self.list[called].0;
                writeln!(out, "cob={}", short(&mut names.objects, &callee.dso, &callee.dso))?;
                writeln!(out, "cfi={}", short(&mut names.files, &callee.file, &callee.file))?;
                writeln!(out, "cfn={}", short(&mut names.functions, &called, &callee.name))?;
                writeln!(out, "calls={} 0\n{line} {}", cost.samples, cost.text())?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Names written so far, with their numbers.
struct Names {
    objects: HashMap<String, usize>,
    files: HashMap<String, usize>,
    functions: HashMap<usize, usize>,
}

/// Returns a name with its number; only the number from the second time on.
fn short<K: Clone + Eq + std::hash::Hash>(known: &mut HashMap<K, usize>, key: &K, name: &str) -> String {
    if let Some(number) = known.get(key) {
        return format!("({number})");
    }
    let number = known.len() + 1;
    known.insert(key.clone(), number);
    format!("({number}) {name}")
}
