//! Figures of the processes that began in a window, by service: their number, and the CPU time of the short-lived ones, by their ancestors.
//!
//! A process counts once, in the window of its fork, for the last program that it ran there. Invariant: the figures of a window have at most
//! [`STACKS`] stacks and one more per service, however many processes there were.
//!
//! Elsewhere: CPU time of long-running processes, which samples show.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use plumb_formats::otlp::FigureStack;
use plumb_profile::{Begin, Life, LifeEnd, LifeId, Profile, StringId};

use crate::figures::ServiceFigures;
use crate::labels::{Attributes, KTHREADD, Owner, ProcessDirectory, place_of};

/// Figure: number of processes.
const PROCESSES: &str = "processes";
/// Figure: CPU time, by the kernel's accounting, of those that began and ended in the window.
const SHORT_LIVED: &str = "short_lived_cpu";
/// Most ancestors in a stack.
const ANCESTORS: usize = 8;
/// Most stacks of a window, and the name of the stack that collects the rest.
const STACKS: usize = 1000;
const OTHERS: &str = "[other processes]";

/// A process that began in the window.
struct Begun {
    /// The last program that it ran.
    last: LifeId,
    /// CPU time of all its programs so far.
    cpu_ns: Option<u64>,
}

/// Sums over the processes of a stack.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    short_lived_ns: u64,
}

/// Figures of a window that was taken out. Call it before the directory finishes the window.
pub(crate) fn of_window(profile: &Profile, directory: &mut ProcessDirectory) -> Vec<ServiceFigures> {
    let mut owners: HashMap<(StringId, StringId, Option<LifeId>), Owner> = HashMap::new();
    let (mut places, mut attributes) = <(HashMap<Attributes, usize>, Vec<Attributes>)>::default();
    let mut sums: BTreeMap<(usize, Vec<StringId>), Sums> = BTreeMap::new();
    let mut count = 0;
    for Begun { last, cpu_ns } in begun(profile) {
        let life = &profile.lives[last];
        let owner = match life.process {
            // The process may have been inspected itself.
            Some(_) => directory.owner_of_life(profile, life),
            None => {
                let key = (life.exe, life.comm, life.parent);
                owners.entry(key).or_insert_with(|| directory.owner_of_life(profile, life)).clone()
            }
        };
        let Owner::Service(service) = owner else { continue };
        let place = place_of(service, &mut places, &mut attributes);
        let mut key = (place, stack(profile, life));
        if count >= STACKS && !sums.contains_key(&key) {
            key.1.clear();
        }
        let sum = sums.entry(key).or_insert_with(|| {
            count += 1;
            Sums::default()
        });
        sum.count += 1;
        sum.short_lived_ns += cpu_ns.filter(|_| life.end == LifeEnd::Exit).unwrap_or(0);
    }
    let mut services: Vec<ServiceFigures> =
        attributes.into_iter().map(|attributes| ServiceFigures { attributes, figures: Vec::new() }).collect();
    for ((place, stack), Sums { count, short_lived_ns }) in sums {
        let stack = names(profile, &stack);
        let time = (short_lived_ns > 0).then(|| (SHORT_LIVED, "nanoseconds", stack.clone(), short_lived_ns));
        services[place].figures.extend(time);
        services[place].figures.push((PROCESSES, "count", stack, count));
    }
    services
}

/// Processes that were forked, except the kernel's own. The profile has lifetimes in the order of their begin.
fn begun(profile: &Profile) -> Vec<Begun> {
    let (mut begun, mut places) = (Vec::<Begun>::new(), HashMap::<u32, usize>::new());
    let is_kernel = |life: &Life| {
        life.parent.and_then(|parent| profile.lives.get(parent)).is_some_and(|parent| parent.pid == KTHREADD)
    };
    for (id, life) in profile.lives.iter().filter(|(_, life)| !is_kernel(life)) {
        match (life.begin, places.get(&life.pid)) {
            (Begin::Fork, _) => {
                places.insert(life.pid, begun.len());
                begun.push(Begun { last: id, cpu_ns: life.cpu_ns });
            }
            (Begin::Exec, Some(&place)) => {
                let one = &mut begun[place];
                // Unknown if the accounting of one of its programs is missing.
                let so_far = one.cpu_ns.zip(life.cpu_ns);
                *one = Begun { last: id, cpu_ns: so_far.map(|(before, own)| before.saturating_add(own)) };
            }
            // The id has been reused by another process.
            (Begin::Running, _) => _ = places.remove(&life.pid),
            (Begin::Exec, None) => {}
        }
    }
    begun
}

/// The stack of a process: its program's name and those of its ancestors.
fn stack(profile: &Profile, life: &Life) -> Vec<StringId> {
    let parent = |life: &Life| life.parent.and_then(|parent| profile.lives.get(parent));
    let mut stack = vec![life.comm];
    let mut next = parent(life);
    while let Some(life) = next.filter(|_| stack.len() <= ANCESTORS) {
        stack.push(life.comm);
        next = parent(life);
    }
    stack
}

fn names(profile: &Profile, stack: &[StringId]) -> FigureStack {
    if stack.is_empty() {
        return vec![OTHERS.into()];
    }
    let name = |&id: &StringId| match profile.strings.get(id) {
        "" => Cow::Borrowed("[unknown]"),
        name => Cow::Owned(name.to_owned()),
    };
    stack.iter().map(name).collect()
}
