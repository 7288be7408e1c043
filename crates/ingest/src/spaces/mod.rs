//! Mappings of processes: address spaces, the files behind them, and the frames of addresses.
//!
//! Elsewhere: which process has which space.

mod code;
mod copied_text;
mod go;
mod lookups;
mod room;
mod runtime;
mod scripts;
mod segments;
mod space;
mod text;
mod vdso;
mod walk;

pub(crate) use scripts::Scripts;
pub(crate) use space::{SpaceId, Spaces, frame_key};
pub(crate) use walk::MAX_FRAMES;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::ops::Range;

use plumb_capture_api::UnwindInfoRef;
use plumb_interpreters::{FrameLists, FrameSource, Interpreter, LoopPart, StackFrames};
use plumb_process::{Backing, FileId, FileKey, FileOrigin, Vma};
use plumb_profile::{Address, DsoId, Found, Frame, FrameId, FrameKind, ProcessId, Profile};
use plumb_table_cache::{TableCache, TableLoader};
use plumb_unwind::Isa;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Source;
use crate::recorded::RecordedMachine;
use code::Code;
use space::{Space, Used};

/// All address spaces, and the code that is mapped in them.
#[derive(Debug)]
pub(crate) struct AddressSpaces {
    source: Source,
    spaces: Spaces,
    code: Code,
    /// Build IDs by path, as listed in a recording.
    build_ids: HashMap<Box<[u8]>, Box<[u8]>>,
    /// Whether unconfirmed scanning results are kept too.
    wants_guesses: bool,
    /// Number of the used mappings of its space that are in the profile, by process row.
    noted: FxHashMap<ProcessId, usize>,
    /// Processes in which a mapping was replaced.
    remapped: Vec<u32>,
    /// Memory with a copy of a file's text since the last call, with its process.
    copied_text: Vec<(u32, Vma)>,
    interpreters: SeenInterpreters,
}

/// Interpreters that processes have mapped.
#[derive(Debug, Default)]
struct SeenInterpreters {
    /// Processes that have mapped a known one since the last call, and an address in it.
    mapped: Vec<(u32, u64)>,
    /// Unknown interpreters with samples.
    unknown: BTreeSet<String>,
}

impl AddressSpaces {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            spaces: Spaces::default(),
            code: Code::default(),
            build_ids: HashMap::new(),
            wants_guesses: false,
            noted: FxHashMap::default(),
            remapped: Vec::new(),
            copied_text: Vec::new(),
            interpreters: SeenInterpreters::default(),
        }
    }

    /// Sets the build ID of a file by its path, or of the vdso.
    pub(crate) fn set_build_id(&mut self, path: &[u8], id: &[u8]) {
        match path {
            b"[vdso]" => self.code.set_vdso_build_id(id),
            _ => _ = self.build_ids.insert(path.into(), id.into()),
        }
    }

    /// Sets the machine that the records come from.
    pub(crate) fn set_machine(&mut self, machine: RecordedMachine) {
        self.code.set_machine(machine);
    }

    /// The architecture whose registers samples have; `None`: one whose stacks are not unwound.
    pub(crate) fn isa(&self) -> Option<Isa> {
        self.code.machine.isa()
    }

    /// Creates an empty space of a process.
    pub(crate) fn create(&mut self, owner: u32) -> SpaceId {
        self.spaces.create(owner)
    }

    /// Adds a process that uses a space.
    pub(crate) fn share(&mut self, id: SpaceId) -> SpaceId {
        self.spaces.share(id)
    }

    /// Removes a process that uses a space.
    pub(crate) fn release(&mut self, id: SpaceId) {
        self.spaces.release(id);
    }

    /// A space.
    pub(crate) fn get(&self, id: SpaceId) -> &Space {
        self.spaces.get(id)
    }

    /// The mapping at an address.
    pub(crate) fn find(&self, id: SpaceId, at: u64) -> Option<&Vma> {
        self.spaces.get(id).mappings.find(at)
    }

    /// Largest number of spaces that existed at one time.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.spaces.len()
    }

    /// Number of process rows whose mappings in the profile are known.
    #[cfg(test)]
    pub(crate) fn noted(&self) -> usize {
        self.noted.len()
    }

    /// The backing of a mapping of a process and its `parent`, and its path if it is a file's.
    pub(crate) fn backing(
        &mut self,
        (pid, parent): (u32, u32),
        range: &Range<u64>,
        key: FileKey,
    ) -> (Backing, Option<Box<[u8]>>) {
        let mut key = key.without_deleted(if self.source == Source::Live { pid } else { 0 });
        let is_memory = is_memory(&key.path);
        match &*key.path {
            b"[vdso]" => return (Backing::Vdso, None),
            // Memory files hold data that programs write themselves, like anonymous memory, unless they hold a program.
            path if !path.starts_with(b"/") || is_memory && !self.may_hold_program(path) => {
                return (Backing::Anonymous, None);
            }
            _ => {}
        }
        let place = match self.source {
            Source::Live => FileOrigin::Process { pid, range: range.clone(), parent },
            Source::File => {
                // Inodes of another machine, or of an earlier time, don't identify today's files.
                (key.device, key.inode, key.generation) = (None, 0, 0);
                key.build_id = key.build_id.or_else(|| self.build_ids.get(&key.path).cloned());
                FileOrigin::Recorded(self.code.machine.files.clone())
            }
        };
        let path = key.path.clone();
        let id = self.code.add(key, &place);
        if is_memory && !self.code.is_program(id) {
            return (Backing::Anonymous, None);
        }
        (Backing::File(id), Some(path))
    }

    /// Whether a memory file may hold a program: container runtimes start from a copy of themselves. While its process exists, the
    /// file can be inspected.
    fn may_hold_program(&self, path: &[u8]) -> bool {
        self.source == Source::Live && path.starts_with(MEMFD)
    }

    /// Adds a mapping in a space for one process alone. Returns the space that the process has from now on.
    pub(crate) fn map(&mut self, id: SpaceId, pid: u32, mapping: Vma) -> SpaceId {
        let mappings = &self.spaces.get(id).mappings;
        let is_same = mappings.find(mapping.start) == Some(&mapping);
        if self.source == Source::Live && !is_same && mappings.overlaps(mapping.start..mapping.end) {
            self.remapped.push(pid);
        }
        self.spaces.map(id, pid, mapping)
    }

    /// Processes in which a mapping was replaced since the last call.
    pub(crate) fn take_remapped(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.remapped)
    }

    /// Memory with a copy of a file's text since the last call, with its process.
    pub(crate) fn take_copied_text(&mut self) -> Vec<(u32, Vma)> {
        std::mem::take(&mut self.copied_text)
    }

    /// The unwind information for a mapping's code.
    pub(crate) fn lend(&self, backing: Backing) -> Option<UnwindInfoRef<'_>> {
        self.code.lend(backing)
    }

    /// Uses cached tables for unwind rules of files with many look-ups, and has such tables made.
    pub(crate) fn use_tables(&mut self, kept: TableCache) {
        self.code.use_tables(TableLoader::new(kept));
    }

    /// Drops unwind information, if there is far more than allowed.
    pub(crate) fn make_room(&mut self) {
        self.code.make_room();
    }

    /// Maintains tables, unwind information and open files, to be called periodically.
    pub(crate) fn look_at_tables(&mut self, most_bytes: usize) {
        self.code.look_at_tables();
        self.code.bound_sometimes(most_bytes);
        if self.source == Source::Live && self.code.is_closing_due() {
            self.code.close_all_but(&self.spaces.files());
        }
    }

    /// Returns the files of frames whose paths have become invalid.
    pub(crate) fn vanished(&self) -> Vec<(DsoId, File)> {
        self.code.vanished()
    }

    /// The frame of a user address. Cached by address: this runs for every frame of every sample.
    #[inline]
    pub(crate) fn user_frame(
        &mut self,
        profile: &mut Profile,
        space: SpaceId,
        (pc, is_return, found): (u64, bool, Found),
    ) -> FrameId {
        let key = frame_key(pc, is_return, found as u8);
        if let Some(&id) = self.spaces.get(space).frames.get(&key) {
            return id;
        }
        self.new_user_frame(profile, space, (pc, is_return, found))
    }

    /// Makes the frame of a user address that is new in this space.
    #[cold]
    pub(crate) fn new_user_frame(
        &mut self,
        profile: &mut Profile,
        id: SpaceId,
        (pc, is_return, found): (u64, bool, Found),
    ) -> FrameId {
        let space = self.spaces.get_mut(id);
        let frame = |dso, address| Frame { kind: FrameKind::User, dso, address, is_return, found };
        // A return address may be the first one of the next mapping; its call is not.
        let lookup = pc.wrapping_sub(is_return.into());
        let Some(&mapping) = space.mappings.find(lookup) else {
            // Not cached: a mapping may come.
            return profile.frames.add(frame(None, Address(pc)));
        };
        let (dso, Address(at)) = self.code.resolve(profile, &mapping, lookup, space.owner);
        let address = at.wrapping_add(is_return.into());
        let used = Used { dso, start: mapping.start, end: mapping.end, bias: pc.wrapping_sub(address) };
        if !space.used.contains(&used) {
            space.used.push(used);
        }
        let id = profile.frames.add(frame(Some(dso), Address(address)));
        space.frames.insert(frame_key(pc, is_return, found as u8), id);
        id
    }

    /// Adds the mappings of a space that frames fell into to the profile, for a process row; and notes its interpreter, if that
    /// is unknown.
    pub(crate) fn note_used(&mut self, profile: &mut Profile, space: SpaceId, process: ProcessId) {
        self.note_interpreter(space);
        let used = &self.spaces.get(space).used;
        let noted = self.noted.entry(process).or_default();
        if *noted == used.len() {
            return;
        }
        profile.mappings.extend(used.iter().skip(*noted).map(|used| plumb_profile::Mapping {
            process,
            dso: used.dso,
            start: used.start,
            end: used.end,
            bias: used.bias,
        }));
        *noted = used.len();
    }

    /// Forgets all process rows except those of running processes.
    pub(crate) fn retain_noted(&mut self, running: &FxHashSet<ProcessId>) {
        self.noted.retain(|process, _| running.contains(process));
        self.noted.shrink_to_fit();
    }

    /// Forgets the rows of processes, files and frames.
    pub(crate) fn forget_rows(&mut self) {
        self.noted.clear();
        self.spaces.forget_rows();
        self.code.forget_rows();
    }
}

/// Interpreters in mapped files.
impl AddressSpaces {
    /// Looks for an interpreter in file `id`, which a process with this executable has mapped.
    pub(crate) fn look_for_interpreter(&mut self, id: FileId, executable: &[u8]) {
        self.code.look_for_interpreter(id, executable);
    }

    /// Notes an interpreter that a process has mapped, if any.
    pub(crate) fn note_mapped_interpreter(
        &mut self,
        (pid, space): (u32, Option<SpaceId>),
        executable: &[u8],
        mapping: &Vma,
    ) {
        let (Backing::File(id), Source::Live) = (mapping.backing, self.source) else { return };
        self.code.look_for_interpreter(id, executable);
        let is_known = self.code.interpreter(id).is_some();
        if is_known {
            self.interpreters.mapped.push((pid, mapping.start));
        }
        if (is_known || self.code.unknown_interpreter(id).is_some())
            && let Some(space) = space
        {
            self.spaces.get_mut(space).interpreter = Some(id);
        }
    }

    /// Processes that have mapped a known interpreter since the last call, and an address in it.
    pub(crate) fn take_interpreted(&mut self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.interpreters.mapped)
    }

    /// Notes the interpreter of a sampled space, if it is unknown.
    fn note_interpreter(&mut self, space: SpaceId) {
        let unknown = self.spaces.get(space).interpreter.and_then(|id| self.code.unknown_interpreter(id));
        if let Some(name) = unknown
            && !self.interpreters.unknown.contains(name)
        {
            self.interpreters.unknown.insert(name.to_owned());
        }
    }

    /// The unknown interpreters with samples.
    pub(crate) fn unknown_interpreters(&self) -> impl Iterator<Item = &str> {
        self.interpreters.unknown.iter().map(String::as_str)
    }

    /// The interpreter in a file, if a known one was found.
    pub(crate) fn interpreter(&self, file: FileId) -> Option<&dyn Interpreter> {
        self.code.interpreter(file)
    }

    /// The lists of frames of a space's interpreter, if it has such.
    pub(crate) fn frame_lists(&self, space: SpaceId) -> Option<&dyn FrameLists> {
        self.interpreter(self.spaces.get(space).interpreter?)?.lists()
    }

    /// Whether the functions of a space's program are native frames.
    pub(crate) fn has_stack_frames(&self, space: SpaceId) -> bool {
        let file = self.spaces.get(space).interpreter;
        let interpreter = file.and_then(|file| self.interpreter(file));
        interpreter.is_some_and(|interpreter| matches!(interpreter.source(), FrameSource::NativeStack(_)))
    }

    /// The known interpreter of a space whose frames are native frames, and the bias of its file's stated addresses.
    pub(crate) fn stack_frames(&self, space: SpaceId) -> Option<(&dyn StackFrames, u64)> {
        let (_, interpreter, bias) = self.mapped_interpreter(space)?;
        match interpreter.source() {
            FrameSource::NativeStack(stack) => Some((stack, bias)),
            FrameSource::Lists(_) => None,
        }
    }

    /// The known interpreter of a space, and the bias to add (wrapping) to its file's stated addresses.
    pub(crate) fn mapped_interpreter(&self, space: SpaceId) -> Option<(FileId, &dyn Interpreter, u64)> {
        let space = self.spaces.get(space);
        let file = space.interpreter?;
        let bias = runtime::bias(&self.code, &space.mappings, file)?;
        Some((file, self.code.interpreter(file)?, bias))
    }

    /// The part of an interpreter's loop that contains an address.
    pub(crate) fn loop_part(&self, space: SpaceId, at: u64) -> Option<LoopPart> {
        self.code.loop_part(self.find(space, at)?, at)
    }

    /// Whether an address is in a file with a known interpreter.
    pub(crate) fn has_interpreter(&self, space: SpaceId, at: u64) -> bool {
        match self.find(space, at).map(|mapping| mapping.backing) {
            Some(Backing::File(id)) => self.code.interpreter(id).is_some(),
            _ => false,
        }
    }

    /// Whether there is code without a file at an address.
    pub(crate) fn is_anonymous(&self, space: SpaceId, at: u64) -> bool {
        self.find(space, at).is_some_and(|mapping| mapping.backing == Backing::Anonymous)
    }
}

/// Prefix of the kernel's names for memfd_create(2) files.
const MEMFD: &[u8] = b"/memfd:";

fn is_memory(path: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"//anon", MEMFD, b"/dev/zero", b"/SYSV", b"/anon_hugepage"];
    names.iter().any(|name| path.starts_with(name))
}
