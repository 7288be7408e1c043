//! Control flow backwards: the possible predecessors of an instruction.

use super::class::Kind;
use super::listing::Listing;

/// Returns, for each instruction, the indices of those that may have run just before it, as far as the function's code shows. After a
/// call that is the call instruction, though the callee's last instruction ran in between. Empty: the predecessor is the caller, or unknown (an
/// indirect jump, a part of the function that lies elsewhere, an exception).
pub(super) fn before(listing: &Listing) -> Vec<Vec<usize>> {
    let count = listing.instructions().len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
    for index in 0..count {
        if index + 1 < count && goes_on(listing, index) {
            before[index + 1].push(index);
        }
        if let Some(to) = listing.jump(index) {
            before[to].push(index);
        }
    }
    before.iter_mut().for_each(|from| from.dedup());
    before
}

/// Whether control may fall through to the next instruction.
fn goes_on(listing: &Listing, index: usize) -> bool {
    let ends =
        matches!(listing.instructions()[index].class.kind, Kind::Jump | Kind::IndirectJump | Kind::Return);
    !ends && !listing.always_faults(index)
}
