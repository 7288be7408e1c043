//! Address spaces, with cached facts about their addresses.
//!
//! A forked child shares its parent's space until one of the two maps something or execs: of 3,000 shells forked by a
//! shell, hardly any maps something. Sharing covers vfork too, where memory really is shared.

use std::cell::RefCell;

use plumb_interpreters::RuntimeState;
use plumb_process::{AddressSpace, Backing, FileId, Vma};
use plumb_profile::FrameId;
use plumb_unwind::{Avma, Cache};
use rustc_hash::{FxHashMap, FxHashSet};

use super::scripts::SharedScripts;

/// Frames for which a space that waits for its next process keeps memory.
const KEPT_FRAMES: usize = 256;

/// An address space that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpaceId(u32);

/// One address space.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Mappings of the space.
    pub(crate) mappings: AddressSpace,
    /// The unwinder's cache for it.
    pub(crate) cache: Cache,
    /// Whether `cache` may have content: most processes are never sampled.
    pub(crate) walked: bool,
    /// Frames by program counter and method of unwinding, see [`frame_key`].
    pub(crate) frames: FxHashMap<u64, FrameId>,
    /// Mappings that frames fell into.
    pub(crate) used: Vec<Used>,
    /// The process that the memory belongs to.
    pub(crate) owner: u32,
    users: u32,
    /// The file of the mapped interpreter.
    pub(crate) interpreter: Option<FileId>,
    /// Code of interpreted programs. Forked memory is the same until it is written to, and new code is distinguished from the
    /// code before it.
    pub(crate) scripts: SharedScripts,
    /// State of the runtime's reader for the process.
    pub(crate) runtime: RefCell<RuntimeState>,
    /// Counts changes of the mappings. Each change invalidates results for addresses.
    pub(crate) changes: u32,
}

/// A mapping that a frame fell into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) dso: plumb_profile::DsoId,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bias: u64,
}

/// All address spaces.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    spaces: Vec<Space>,
    free: Vec<u32>,
}

impl Spaces {
    /// Creates an empty one, with one user.
    pub(crate) fn create(&mut self, owner: u32) -> SpaceId {
        self.insert(Space { owner, ..Space::default() })
    }

    fn insert(&mut self, space: Space) -> SpaceId {
        if let Some(index) = self.free.pop() {
            let old = &mut self.spaces[index as usize];
            old.changes = old.changes.wrapping_add(1);
            old.used = space.used;
            old.scripts = space.scripts;
            old.runtime = space.runtime;
            old.mappings = space.mappings;
            old.owner = space.owner;
            old.interpreter = space.interpreter;
            old.users = 1;
            return SpaceId(index);
        }
        self.spaces.push(Space { users: 1, ..space });
        SpaceId(u32::try_from(self.spaces.len() - 1).unwrap_or(u32::MAX))
    }

    /// The files that any process has mapped.
    pub(crate) fn files(&self) -> FxHashSet<FileId> {
        let in_use = self.spaces.iter().filter(|space| space.users > 0);
        let file = |mapping: &Vma| match mapping.backing {
            Backing::File(id) => Some(id),
            Backing::Vdso | Backing::Anonymous => None,
        };
        in_use.flat_map(|space| space.mappings.mappings().iter().filter_map(file)).collect()
    }

    /// Adds a process that uses `id`.
    pub(crate) fn share(&mut self, id: SpaceId) -> SpaceId {
        self.get_mut(id).users += 1;
        id
    }

    /// Removes a process that uses `id`.
    pub(crate) fn release(&mut self, id: SpaceId) {
        let space = self.get_mut(id);
        space.users = space.users.saturating_sub(1);
        if space.users == 0 {
            space.mappings = AddressSpace::default();
            space.scripts = SharedScripts::default();
            space.runtime = RefCell::default();
            space.used = Vec::new();
            // Small maps are kept for the next process, as clearing is cheaper than growing again. Those of a compiler are not: otherwise each
            // space would sooner or later be as large.
            if std::mem::take(&mut space.walked) {
                space.cache.clear();
            }
            space.frames.clear();
            space.frames.shrink_to(KEPT_FRAMES);
            space.interpreter = None;
            self.free.push(id.0);
        }
    }

    /// Forgets the rows of frames, files and functions. Also frees the unwinder's cache: each space in which a stack was ever unwound has
    /// some 80 KiB, even after its process has ended, and in a long recording that is each of them.
    pub(crate) fn forget_rows(&mut self) {
        for space in &mut self.spaces {
            (space.walked, space.cache) = (false, Cache::default());
            space.frames = FxHashMap::default();
            space.used = Vec::new();
            space.scripts.borrow_mut().forget_rows();
        }
    }

    /// Largest number of spaces that existed at one time.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.spaces.len()
    }

    /// The space.
    pub(crate) fn get(&self, id: SpaceId) -> &Space {
        &self.spaces[id.0 as usize]
    }

    /// The space, for changes that apply to all its users.
    pub(crate) fn get_mut(&mut self, id: SpaceId) -> &mut Space {
        &mut self.spaces[id.0 as usize]
    }

    /// Adds a mapping in `id` for process `pid` alone. Returns the space that the process has from now on.
    pub(crate) fn map(&mut self, id: SpaceId, pid: u32, mapping: Vma) -> SpaceId {
        let shared = self.get(id).users > 1;
        let id = if shared { self.copy(id, pid) } else { id };
        let space = self.get_mut(id);
        let buries = space.mappings.overlaps(mapping.start..mapping.end);
        if space.mappings.map(mapping) {
            space.changes = space.changes.wrapping_add(1);
            // Even if nothing was mapped there: that is cached too.
            if space.walked {
                space.cache.invalidate(Avma(mapping.start)..Avma(mapping.end));
            }
            if buries {
                space.frames.clear();
            }
        }
        id
    }

    /// A separate space for one of the processes that share `id`.
    fn copy(&mut self, id: SpaceId, pid: u32) -> SpaceId {
        let old = self.get(id);
        let (mappings, used, scripts) = (old.mappings.clone(), old.used.clone(), old.scripts.clone());
        let interpreter = old.interpreter;
        self.release(id);
        self.insert(Space { owner: pid, mappings, used, scripts, interpreter, ..Space::default() })
    }
}

/// The key of a frame in [`Space::frames`]: `pc` is below 2^57, so that its bits and four more fit.
pub(crate) fn frame_key(pc: u64, is_return: bool, found: u8) -> u64 {
    pc << 4 | u64::from(found & 7) << 1 | u64::from(is_return)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_large_process_took_is_given_back_at_its_end() {
        let mut spaces = Spaces::default();
        let ids: Vec<SpaceId> = (0..10).map(|pid| spaces.create(pid)).collect();
        let frame = <FrameId as plumb_profile::Id>::from_index(0);
        for &id in &ids {
            spaces.get_mut(id).frames.extend((0..100_000).map(|pc| (pc, frame)));
            spaces.release(id);
        }
        let room: usize = ids.iter().map(|&id| spaces.get(id).frames.capacity()).sum();
        assert!(room < 10 * 4 * KEPT_FRAMES, "{room}");
    }
}
