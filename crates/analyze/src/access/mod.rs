//! The data that a function's instructions worked on, from the user registers of samples and the code around them.
//!
//! A sample's registers are those of the instruction that was about to run, so the address of its memory operand is exact, whatever the
//! sample waited for. If that instruction has no memory operand, the nearest one before or after it is used, as long as nothing in between
//! changes the registers of its address.
//!
//! Elsewhere: the advice drawn from it (`advice`).

mod address;
mod pace;
mod sharing;
mod working_set;

pub(crate) use pace::nanoseconds_per_byte;
pub(crate) use sharing::{LEAST_OF_SITE, LineSharing, sharing};
pub(crate) use working_set::{WorkingSet, working_set};

use std::collections::HashMap;

use plumb_profile::{EventId, FrameId, Profile, RegisterSample, ThreadId};

use crate::annotate::{Listing, SampledFunction};
use crate::isa::Operands;

/// Bytes of a cache line.
pub(crate) const LINE: u64 = 64;
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// A data address that an instruction accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Time of the sample, in nanoseconds.
    pub time_ns: u64,
    /// The sampled thread.
    pub thread: ThreadId,
    /// The address.
    pub address: u64,
}

/// The data addresses of a function's instructions, as far as samples give them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses {
    /// By instruction index, in time order.
    pub sites: HashMap<usize, Vec<Access>>,
    /// Number of samples in the function with registers, whether these gave an address or not.
    pub samples: usize,
}

impl Accesses {
    /// Collects the accesses of a function from samples of one event. `operands` are those of the function's instructions.
    pub fn of(
        profile: &Profile,
        function: &SampledFunction,
        (listing, operands): (&Listing, &[Operands]),
        event: Option<EventId>,
    ) -> Self {
        let mut accesses = Accesses::default();
        let mut numbers: HashMap<FrameId, Option<usize>> = HashMap::new();
        let finder = address::Finder::new(listing, operands);
        for row in profile.registers.rows().iter().filter(|row| event.is_none_or(|event| row.event == event))
        {
            let number = *numbers.entry(row.frame).or_insert_with(|| {
                let address = profile.frames[row.frame].address;
                if function.has(profile, row.frame) { listing.index_of(address) } else { None }
            });
            let Some(number) = number else { continue };
            accesses.samples += 1;
            for (site, address) in finder.find(number, row) {
                accesses.sites.entry(site).or_default().push(access(row, address));
            }
        }
        accesses
    }

    /// Returns the instructions with the most addresses, most first.
    pub fn busiest(&self) -> Vec<(usize, &[Access])> {
        let mut sites: Vec<(usize, &[Access])> =
            self.sites.iter().map(|(&site, all)| (site, all.as_slice())).collect();
        sites.sort_by_key(|(site, all)| (std::cmp::Reverse(all.len()), *site));
        sites
    }
}

fn access(row: &RegisterSample, address: u64) -> Access {
    Access { time_ns: row.time_ns, thread: row.thread, address }
}
