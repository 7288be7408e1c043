//! Where the processor time of a view went, with the names of system calls of the machine that was recorded.
//!
//! Not here: what functions of the kernel mean (analyze), how the table is written (`plumb kernel`).

use plumb_analyze::{Cause, Filter, KernelRow, KernelTime, View, is_clock};
use plumb_profile::Profile;
use plumb_syscalls::Abi;

/// Where the time of a view went.
pub fn of_view(view: &View<'_>, filter: &Filter) -> KernelTime {
    KernelTime::new(view, filter, call_names(view.profile()))
}

/// Processor time of what a view keeps, in nanoseconds: the kernel's account of all that was recorded, otherwise the sum of the samples.
/// `None`: they are of something else.
pub fn cpu_ns(view: &View<'_>, filter: &Filter) -> Option<u64> {
    view.meta().target_cpu_ns.or_else(|| {
        let profile = view.profile();
        let event = filter.event.map(|event| &profile.events[event])?;
        let is_time = is_clock(profile.strings.get(event.name)) && profile.strings.get(event.unit) == "ns";
        is_time.then_some(view.part().weight)
    })
}

/// The names of system calls by number, on the machine of a recording.
pub fn call_names(profile: &Profile) -> impl Fn(u32) -> Option<&'static str> + use<> {
    let abi = abi(&profile.meta.arch);
    move |number| plumb_syscalls::name(abi?, number)
}

/// Likewise as a section of another report; `None`: there is nothing to say of the kernel, or of time.
pub fn section(view: &View<'_>, filter: &Filter) -> Option<KernelTime> {
    let says_more = |row: &KernelRow| !matches!(row.cause, Cause::User | Cause::Other | Cause::Idle);
    Some(of_view(view, filter)).filter(|time| time.is_time && time.rows.iter().any(says_more))
}

/// By which numbers programs of a machine call their kernel.
pub fn abi(arch: &str) -> Option<Abi> {
    match arch {
        "x86_64" => Some(Abi::X86_64),
        "aarch64" => Some(Abi::Aarch64),
        _ => None,
    }
}
