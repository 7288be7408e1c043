//! What may have run just before an instruction.

use super::class::Kind;
use super::listing::Listing;

/// For each instruction the numbers of those that may have run just before it, as far as the function's code tells. Of a call it
/// is the end of the called function that did. Empty: the caller, or something that the code doesn't say (an indirect jump,
/// another part of the function that lies elsewhere, an exception).
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

/// Whether the next instruction may come next.
fn goes_on(listing: &Listing, index: usize) -> bool {
    let ends =
        matches!(listing.instructions()[index].class.kind, Kind::Jump | Kind::IndirectJump | Kind::Return);
    !ends && !listing.always_faults(index)
}
