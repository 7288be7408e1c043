//! Probes of the programs (bpf/places.h).
//!
//! Tracepoints are attached to as raw tracepoints, where programs don't suppress each other, and not as
//! perf events: for a system call that is the entry of all calls, and the program checks which one it is.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};
use plumb_capture_api::{FallbackEvents, ProbeCounts, ProbeSpec, SamplingRate};
use plumb_syscalls::Abi;

use crate::object::{load_program, skipped, take, take_descriptor};
use crate::refusal::{LoadError, refused};
use crate::support::Unsupported;
use crate::wire::{
    MAX_PLACES, NO_CALL, PLACE_IN_KERNEL, PLACE_LIMITED, PLACE_OVER, PLACE_SCOPED, Place, Tally,
};
use crate::{sys, way_in};

/// System calls whose tracepoints have a name other than the call's: that of the kernel function.
const RENAMED: [(&str, &str); 6] = [
    ("newstat", "stat"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
];
/// A rarely hit tracepoint, for testing whether a program can be attached.
const HARMLESS: &str = "sched_process_exec";
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

// SAFETY (all): structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Place {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Tally {}
}

/// The programs attached to probes, as far as the kernel accepts them: tracepoints need Linux 6.10.
pub(crate) struct AtPlaces {
    tracepoint: Result<OwnedFd, LoadError>,
    function: Result<OwnedFd, LoadError>,
}

impl AtPlaces {
    /// Loads the programs of an object. To be called before maps are taken from it.
    pub fn load(bpf: &mut Ebpf) -> Self {
        let tracepoint = load_program(bpf, "on_tracepoint").map_err(|error| match error {
            LoadError::Refused(refusal) if lacks_cookie(refusal.verifier_reason()) => LoadError::Unsupported(
                Unsupported::Helper("bpf_get_attach_cookie at raw tracepoints", "6.10"),
            ),
            error => error,
        });
        Self { tracepoint, function: load_program(bpf, "on_function") }
    }
}

/// The probes, and their programs.
pub(crate) struct Places {
    programs: AtPlaces,
    places: Array<MapData, Place>,
    tallies: PerCpuArray<MapData, Tally>,
    copiers: OwnedFd,
    cpus: u32,
    links: Vec<OwnedFd>,
    /// Probe numbers up to this one may be in use.
    watched: u32,
}

impl Places {
    /// Takes the maps of an object.
    pub fn take(bpf: &mut Ebpf, programs: AtPlaces, cpus: u32) -> Result<Self, LoadError> {
        Ok(Self {
            programs,
            places: take(bpf, "places")?,
            tallies: take(bpf, "tallies")?,
            copiers: take_descriptor(bpf, "place_copiers")?,
            cpus,
            links: Vec::new(),
            watched: 0,
        })
    }

    /// Whether programs at tracepoints and at functions are available. The first is tested by attaching it to an unused tracepoint.
    pub fn tried(self) -> (Result<(), LoadError>, Result<(), LoadError>) {
        let AtPlaces { tracepoint, function } = self.programs;
        let attach = |program: OwnedFd| {
            sys::attach_to_tracepoint(program.as_fd(), HARMLESS, MAX_PLACES.into())
                .map_err(refused("the program on_tracepoint at a tracepoint"))
        };
        (tracepoint.and_then(attach).map(drop), function.map(drop))
    }

    /// The program for function events.
    pub fn at_function(&self) -> Option<&OwnedFd> {
        self.programs.function.as_ref().ok()
    }

    /// Starts to sample a probe.
    pub fn watch(&mut self, watched: &ProbeSpec<'_>) -> io::Result<FallbackEvents> {
        let number = u32::try_from(watched.number).ok().filter(|&number| number < MAX_PLACES);
        let number = number.ok_or_else(|| io::Error::other(format!("more than {MAX_PLACES} events")))?;
        let point = watched.tracepoint.map(Point::find).transpose()?;
        let program = if point.is_some() { &self.programs.tracepoint } else { &self.programs.function };
        let program = program.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
        // At a system call's tracepoint the stack has no kernel frames.
        let in_kernel = point.as_ref().filter(|point| point.call.is_none());
        let way_in = in_kernel.map(|point| way_in::of(point.name));
        let hz = |hz: u32| SECOND / u64::from(hz.max(1));
        let (period, interval_ns) = match (watched.pace, watched.limit_hz) {
            (SamplingRate::Period(period), limit) => (period.max(1), limit.map_or(0, hz)),
            (SamplingRate::Frequency(frequency_hz), _) => (0, hz(frequency_hz)),
        };
        let flags = [
            (PLACE_SCOPED, watched.is_scoped),
            (PLACE_IN_KERNEL, way_in.is_some()),
            (PLACE_LIMITED, watched.limit_hz.is_some()),
        ];
        let flags = flags.iter().filter(|(_, is_so)| *is_so).map(|(flag, _)| flag).sum();
        let call = point.as_ref().and_then(|point| point.call).unwrap_or(NO_CALL);
        let place = Place { period, interval_ns, samples: 0, first_ns: 0, call, flags };
        self.places.set(number, place, 0).map_err(io::Error::other)?;
        self.watched = self.watched.max(number + 1);
        let map = sys::create_events(self.cpus)?;
        sys::update_u32(self.copiers.as_fd(), number, map.as_raw_fd() as u32)?;
        if let Some(point) = point {
            let link = sys::attach_to_tracepoint(program.as_fd(), point.name, number.into())?;
            self.links.push(link);
        }
        Ok(FallbackEvents { map, way_in })
    }

    /// Number of hits of tracepoints, by any process, that were missed.
    pub fn unseen(&self) -> u64 {
        self.programs.tracepoint.as_ref().ok().and_then(|program| skipped(program.as_fd())).unwrap_or(0)
    }

    /// Stops sampling probes.
    pub fn stop(&mut self) -> io::Result<()> {
        for number in 0..self.watched {
            let place = self.places.get(&number, 0).map_err(io::Error::other)?;
            let place = Place { flags: place.flags | PLACE_OVER, ..place };
            self.places.set(number, place, 0).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// The counts of a probe so far.
    pub fn probe_counts(&self, number: usize) -> Option<ProbeCounts> {
        let number = u32::try_from(number).ok()?;
        let place = self.places.get(&number, 0).ok()?;
        let tallies = self.tallies.get(&number, 0).ok()?;
        Some(ProbeCounts {
            times: tallies.iter().map(|tally| tally.passed).sum(),
            is_by_time: place.period == 0,
            lost: tallies.iter().map(|tally| tally.lost).sum(),
        })
    }
}

/// Whether the verifier rejects asking for the probe's cookie.
fn lacks_cookie(verifier_reason: Option<&str>) -> bool {
    verifier_reason.is_some_and(|reason| reason.contains("bpf_get_attach_cookie"))
}

/// A kernel tracepoint, and the only system call that it reports, if any.
struct Point<'a> {
    name: &'a str,
    call: Option<u32>,
}

impl<'a> Point<'a> {
    /// The tracepoint of perf's event `GROUP:NAME`.
    fn find(event: &'a str) -> io::Result<Self> {
        let Some((group, name)) = event.split_once(':') else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if group != "syscalls" {
            // The weight of these events is a time in their own data, which is not read here.
            let is_of_times = group == "sched" && name.starts_with("sched_stat_");
            return if is_of_times {
                Err(io::Error::other("its samples count nanoseconds"))
            } else {
                Ok(Self { name, call: None })
            };
        }
        let (name, call) = ["sys_enter", "sys_exit"]
            .into_iter()
            .find_map(|point| Some((point, name.strip_prefix(point)?.strip_prefix('_')?)))
            .ok_or(io::ErrorKind::InvalidInput)?;
        let known = RENAMED.iter().find(|(renamed, _)| *renamed == call).map_or(call, |(_, known)| known);
        let call = plumb_syscalls::number(Abi::NATIVE, known)
            .ok_or_else(|| io::Error::other(format!("the number of the system call {call} is not known")))?;
        Ok(Self { name, call: Some(call) })
    }
}
