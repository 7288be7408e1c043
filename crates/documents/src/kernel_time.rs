//! The CPU time of a view by cause, with the names of system calls of the recorded machine.
//!
//! Elsewhere: the meaning of kernel functions (analyze), the output of the table (`plumb kernel`).

use plumb_analyze::{Cause, Filter, KernelRow, KernelTime, View, is_cpu_time};
use plumb_profile::Profile;
use plumb_syscalls::Abi;

/// Returns the time of a view by cause.
pub fn of_view(view: &View<'_>, filter: &Filter) -> KernelTime {
    KernelTime::new(view, filter, call_names(view.profile()))
}

/// Returns the CPU time of a view in nanoseconds: the kernel's account of the whole recording, otherwise the sum of the samples.
/// `None`: samples measure another quantity.
pub fn cpu_ns(view: &View<'_>, filter: &Filter) -> Option<u64> {
    view.meta().target_cpu_ns.or_else(|| {
        let profile = view.profile();
        let event = filter.event.map(|event| &profile.events[event])?;
        is_cpu_time(profile, event).then_some(view.part().weight)
    })
}

/// Returns the names of system calls by number, on the recorded machine.
pub fn call_names(profile: &Profile) -> impl Fn(u32) -> Option<&'static str> + use<> {
    let abi = Abi::of_machine(&profile.meta.arch);
    move |number| plumb_syscalls::name(abi?, number)
}

/// Returns the table as a section of another report; `None`: no kernel time, or the event is not a time.
pub fn section(view: &View<'_>, filter: &Filter) -> Option<KernelTime> {
    let says_more = |row: &KernelRow| !matches!(row.cause, Cause::User | Cause::Other | Cause::Idle);
    Some(of_view(view, filter)).filter(|time| time.is_time && time.rows.iter().any(says_more))
}
