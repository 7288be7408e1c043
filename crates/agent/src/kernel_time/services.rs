//! System calls by service, and the figures made of them. Pure.
//!
//! Invariant: the number of services is limited; calls of any further service go to a common one.

use std::collections::{BTreeMap, HashMap};

use plumb_syscalls::{Abi, named};

use super::books::CallSum;
use crate::figures::ServiceFigures;
use crate::labels::{Attributes, Owner, place_of};

/// Figure: CPU time of the calls.
const KERNEL_TIME: &str = "kernel_time";
/// Figure: number of calls.
const SYSTEM_CALLS: &str = "system_calls";
/// Number that the kernel side uses for calls that are not distinguished, such as those of 32-bit programs, and its name.
const OTHERS: (u32, &str) = (511, "others");

/// Calls of a service: count and nanoseconds by system call number.
type Calls = BTreeMap<u32, (u64, u64)>;

/// Sums of the window in progress.
#[derive(Debug, Default)]
pub(super) struct ServiceSums {
    places: HashMap<Attributes, usize>,
    attributes: Vec<Attributes>,
    calls: Vec<Calls>,
}

impl ServiceSums {
    /// Adds calls of a process.
    pub fn add(&mut self, owner: Owner, calls: Vec<CallSum>) {
        let Owner::Service(attributes) = owner else { return };
        let place = place_of(attributes, &mut self.places, &mut self.attributes);
        self.calls.resize_with(self.attributes.len(), Calls::default);
        for one in calls {
            let sum = self.calls[place].entry(one.number).or_default();
            sum.0 += one.calls;
            sum.1 += one.cpu_ns;
        }
    }

    /// Takes the sums out as figures. `floor_ns`: nanoseconds of each call's time that are tracing overhead.
    pub fn take(&mut self, floor_ns: u64) -> Vec<ServiceFigures> {
        let Self { attributes, calls, .. } = std::mem::take(self);
        let figures = |(attributes, calls): (Attributes, Calls)| {
            let of_call = |(number, (count, ns)): (u32, (u64, u64))| {
                let name = if number == OTHERS.0 { OTHERS.1.into() } else { named(Abi::NATIVE, number) };
                let stack = vec![name];
                let own_ns = ns.saturating_sub(count.saturating_mul(floor_ns));
                let time = (own_ns > 0).then(|| (KERNEL_TIME, "nanoseconds", stack.clone(), own_ns));
                let count = (count > 0).then_some((SYSTEM_CALLS, "count", stack, count));
                time.into_iter().chain(count)
            };
            ServiceFigures { attributes, figures: calls.into_iter().flat_map(of_call).collect() }
        };
        attributes.into_iter().zip(calls).map(figures).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::Service([("service.name".to_owned(), name.to_owned())].into())
    }

    fn calls(number: u32, calls: u64, cpu_ns: u64) -> Vec<CallSum> {
        vec![CallSum { number, calls, cpu_ns }]
    }

    #[test]
    fn processes_of_a_service_are_one_and_measuring_is_taken_off() {
        let mut sums = ServiceSums::default();
        sums.add(owner("web"), calls(0, 10, 5000));
        sums.add(owner("web"), calls(0, 5, 1000));
        sums.add(owner("db"), calls(OTHERS.0, 3, 150));
        sums.add(Owner::LeftOut, calls(0, 100, 100));
        let figures = sums.take(60);
        let of = |name: &str| {
            let one = figures.iter().find(|one| one.attributes["service.name"] == name);
            one.map(|one| one.figures.clone()).unwrap_or_default()
        };
        let expected = [
            ("kernel_time", "nanoseconds", vec!["read".into()], 6000 - 15 * 60),
            ("system_calls", "count", vec!["read".into()], 15),
        ];
        assert_eq!(of("web"), expected);
        assert_eq!(
            of("db"),
            [("system_calls", "count", vec!["others".into()], 3)],
            "all of it was the measuring"
        );
        assert!(sums.take(60).is_empty());
    }

    #[test]
    fn very_many_services_are_few() {
        let mut sums = ServiceSums::default();
        (0..2000).for_each(|n| sums.add(owner(&format!("conftest{n}")), calls(0, 1, 1)));
        let figures = sums.take(0);
        assert_eq!(figures.len(), 501);
        let all: u64 = figures
            .iter()
            .flat_map(|one| &one.figures)
            .filter(|one| one.0 == SYSTEM_CALLS)
            .map(|one| one.3)
            .sum();
        assert_eq!(all, 2000);
    }
}
