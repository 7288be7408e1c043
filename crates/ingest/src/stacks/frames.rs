//! The frames of user addresses in one address space.

use plumb_profile::{DsoId, DsoKind, Found, FrameId, Profile, Truncation};
use plumb_unwind::Walked;

use super::draft::{Ending, found_of};
use super::stitch::Frames;
use crate::spaces::{AddressSpaces, SpaceId};

/// Makes frames of one address space.
pub(crate) struct SpaceFrames<'a> {
    spaces: &'a mut AddressSpaces,
    profile: &'a mut Profile,
    space: SpaceId,
}

impl<'a> SpaceFrames<'a> {
    /// Makes frames of `space` in the profile.
    pub(crate) fn new(spaces: &'a mut AddressSpaces, profile: &'a mut Profile, space: SpaceId) -> Self {
        Self { spaces, profile, space }
    }

    /// The frame of a user address.
    #[inline]
    pub(crate) fn at(&mut self, address: u64, is_return: bool, found: Found) -> FrameId {
        self.spaces.user_frame(self.profile, self.space, (address, is_return, found))
    }

    /// The frame of an unwound user address.
    #[inline]
    pub(crate) fn walked(&mut self, walked: &Walked) -> FrameId {
        self.at(walked.pc.0, walked.is_return, found_of(walked.found))
    }

    /// The file of a frame.
    pub(crate) fn dso(&self, frame: FrameId) -> Option<DsoId> {
        self.profile.frames[frame].dso
    }

    /// Whether there is code without a file at an address.
    pub(crate) fn is_anonymous(&self, at: u64) -> bool {
        self.spaces.is_anonymous(self.space, at)
    }

    /// The reason for truncation, with the file responsible: that of the outermost frame.
    pub(crate) fn blame(&mut self, cut: Truncation, outermost: Option<&Walked>) -> Ending {
        let Some(outermost) = outermost else { return Ending::Truncation(cut, None) };
        let frame = self.walked(outermost);
        let dso = self.dso(frame);
        let is_anonymous =
            dso.is_some_and(|dso| matches!(self.profile.dsos[dso].kind, DsoKind::Anonymous { .. }));
        match cut {
            Truncation::NoUnwindInfo if is_anonymous => Ending::Truncation(Truncation::JitCode, dso),
            cut => Ending::Truncation(cut, dso),
        }
    }
}

impl Frames for SpaceFrames<'_> {
    fn frame(&mut self, walked: &Walked) -> FrameId {
        self.walked(walked)
    }

    fn profile(&mut self) -> &mut Profile {
        self.profile
    }
}
