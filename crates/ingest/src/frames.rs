//! From program counters to frames of the profile, by what is mapped there.

use plumb_profile::{Address, Found, Frame, FrameId, FrameKind};

use super::Ingest;
use super::spaces::{SpaceId, Used};

impl Ingest {
    /// Makes the frame of a user address that was not seen before in this space.
    #[cold]
    pub(super) fn new_user_frame(
        &mut self,
        id: SpaceId,
        key: u64,
        pc: u64,
        is_return: bool,
        found: Found,
    ) -> FrameId {
        let space = self.spaces.get_mut(id);
        let frame = |dso, address| Frame { kind: FrameKind::User, dso, address, is_return, found };
        // A return address may be the first one of the next mapping; its call is not.
        let lookup = pc.wrapping_sub(is_return.into());
        let Some(&mapping) = space.mappings.find(lookup) else {
            // Not cached: a mapping may come.
            return self.profile.frames.add(frame(None, Address(pc)));
        };
        let (dso, Address(at)) = self.code.resolve(&mut self.profile, &mapping, lookup, space.owner);
        let address = at.wrapping_add(is_return.into());
        let used = Used { dso, start: mapping.start, end: mapping.end, bias: pc.wrapping_sub(address) };
        if !space.used.contains(&used) {
            space.used.push(used);
        }
        let id = self.profile.frames.add(frame(Some(dso), Address(address)));
        space.frames.insert(key, id);
        id
    }
}
