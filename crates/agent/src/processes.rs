//! Processes that began in a window, as figures of services: how many, and what those took that were over soon, by who started them.
//!
//! A process counts once, in the window in which it was forked, for the last program that it ran there. Invariant: the figures of a window are of no
//! more than [`STACKS`] stacks and one of each service, however many processes there were.
//!
//! Not here: processor time of those that go on, which samples tell.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use plumb_formats::otlp::FigureStack;
use plumb_profile::{Begin, Life, LifeEnd, LifeId, Profile, StringId};

use crate::figures::ServiceFigures;
use crate::labels::{Attributes, KTHREADD, Owner, ProcessDirectory, place_of};

/// How many there were.
const PROCESSES: &str = "processes";
/// Processor time, by the kernel's account, of those that began and ended in the window.
const SHORT_LIVED: &str = "short_lived_cpu";
/// Most ancestors that are told.
const ANCESTORS: usize = 8;
/// Most stacks of a window, and what stands for those beyond.
const STACKS: usize = 1000;
const OTHERS: &str = "[other processes]";

/// A process that began in the window.
struct Begun {
    /// The last program that it ran.
    last: LifeId,
    /// All of its programs so far.
    cpu_ns: Option<u64>,
}

/// What processes of a stack sum up to.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    short_lived_ns: u64,
}

/// The figures of a window that was taken out, before the directory finishes it.
pub(crate) fn of_window(profile: &Profile, directory: &mut ProcessDirectory) -> Vec<ServiceFigures> {
    let mut owners: HashMap<(StringId, StringId, Option<LifeId>), Owner> = HashMap::new();
    let (mut places, mut attributes) = <(HashMap<Attributes, usize>, Vec<Attributes>)>::default();
    let mut sums: BTreeMap<(usize, Vec<StringId>), Sums> = BTreeMap::new();
    let mut count = 0;
    for Begun { last, cpu_ns } in begun(profile) {
        let life = &profile.lives[last];
        let owner = match life.process {
            // It may have been looked at itself.
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

/// Processes by their forks, but for the kernel's own. Their lives are in the order in which they began.
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
                // Of a thread whose account is missing nothing is told.
                let so_far = one.cpu_ns.zip(life.cpu_ns);
                *one = Begun { last: id, cpu_ns: so_far.map(|(before, own)| before.saturating_add(own)) };
            }
            // What forked is another process by now.
            (Begin::Running, _) => _ = places.remove(&life.pid),
            (Begin::Exec, None) => {}
        }
    }
    begun
}

/// A process and who started it, by the names of their programs.
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
