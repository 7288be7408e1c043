//! Files with user code: their unwind information, and the DSOs that frames refer to.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::time::{Duration, Instant};

use plumb_capture_api::UnwindInfoRef;
use plumb_interpreters::{Detected, Interpreter, LoopPart};
use plumb_process::{Backing, Elf, FileId, FileKey, FileOffset, FileOrigin, Files, UnwindSections, Vma};
use plumb_profile::{Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, Profile};
use plumb_table_cache::{GoFunctions, TableLoader, module_of};
use plumb_unwind::{Avma, Located, Module};
use rustc_hash::{FxHashMap, FxHashSet};

use super::go::GoProgram;
use super::lookups::Lookups;
use super::room::Room;
use super::segments::{anonymous, segments_of};
use super::text::TextBlocks;
use super::vdso::{Vdso, VdsoImage};
use crate::recorded::RecordedMachine;

type Unwind = Module<Vec<u8>>;

/// All files, each with its unwind information once requested.
#[derive(Debug, Default)]
pub(crate) struct Code {
    files: RefCell<Files>,
    text: RefCell<TextBlocks>,
    /// By file number.
    known: Vec<Known>,
    /// Counts calls of [`Code::bound`].
    round: u32,
    /// Time of the last bounding.
    bounded: Option<Instant>,
    room: Room,
    /// Files mapped since unused ones were last closed.
    mapped_lately: FxHashSet<FileId>,
    closed: Option<Instant>,
    /// The loader of tables, if they are used.
    shelf: Option<RefCell<TableLoader>>,
    /// The interpreters in inspected files.
    interpreters: FxHashMap<FileId, Option<Detected>>,
    vdso: Vdso,
    pub(crate) machine: RecordedMachine,
}

/// State of one file.
#[derive(Debug, Default)]
struct Known {
    /// Unwind information for unwinding; for a Go program without Go's own rules.
    module: OnceCell<Option<Unwind>>,
    /// Go's own rules, if they are not in `module`.
    go: OnceCell<Option<GoProgram>>,
    /// All unwind information of a Go program, while tables are made of it.
    whole: OnceCell<Option<Unwind>>,
    /// The round in which `whole` was last requested.
    lent: Cell<u32>,
    /// The round of [`Code::bound`] in which its unwind information was last requested.
    asked: Cell<u32>,
    /// Number of addresses looked up in it, until its table was requested.
    lookups: Cell<Lookups>,
    dso: Option<DsoId>,
}

impl Known {
    /// Drops the unwind information. A table is requested again once it is worth it.
    fn forget(&mut self) {
        (self.module, self.go, self.whole) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        self.lookups.set(Lookups::default());
    }

    fn bytes(&self) -> usize {
        let loaded = [&self.module, &self.whole].into_iter().filter_map(|cell| cell.get()?.as_ref());
        loaded.map(Unwind::bytes).sum::<usize>() + self.go_program().map_or(0, GoProgram::bytes)
    }

    fn go_program(&self) -> Option<&GoProgram> {
        self.go.get()?.as_ref()
    }
}

/// Unwind information requested within this time is kept: reading it again takes as long as copying it.
const IN_USE: Duration = Duration::from_millis(200);
/// Interval between searches for files that were unmapped.
const CLOSING: Duration = Duration::from_secs(5);

impl Code {
    /// The file of a mapping.
    pub(crate) fn add(&mut self, key: FileKey, place: &FileOrigin) -> FileId {
        let id = self.files.get_mut().add(key, place);
        self.mapped_lately.insert(id);
        if self.known.len() <= id.index() {
            self.known.resize_with(id.index() + 1, Known::default);
        }
        // A closed file has been opened again by now.
        let cell = &mut self.known[id.index()].module;
        if cell.get().is_some_and(Option::is_none) {
            *cell = OnceCell::new();
        }
        id
    }

    /// Whether a file is a program or library.
    pub(crate) fn is_program(&mut self, id: FileId) -> bool {
        self.files.get_mut().get(id).elf().is_some()
    }

    /// Sets the machine that the files are of.
    pub(crate) fn set_machine(&mut self, machine: RecordedMachine) {
        self.vdso.is_elsewhere = !machine.is_native();
        self.machine = machine;
    }

    /// Sets the build ID of the recorded machine's vdso.
    pub(crate) fn set_vdso_build_id(&mut self, id: &[u8]) {
        self.vdso.build_id = Some(id.into());
    }

    /// The unwind information for unwinding in a file, except that of [`Code::go_function`].
    pub(crate) fn module(&self, id: FileId) -> Option<&Unwind> {
        let known = self.known.get(id.index())?;
        known.asked.set(self.round);
        let load = || {
            let mut sections = self.take_sections(id)?;
            // If the file can't be read again, nothing would be left for tables.
            let again = self.files.borrow().get(id).can_be_read_again();
            let go = again.then(|| GoFunctions::take(&mut sections)).flatten().map(GoProgram::new);
            self.room.add(go.as_ref().map_or(0, GoProgram::bytes));
            let _ = known.go.set(go);
            Some(self.made(id, sections))
        };
        known.module.get_or_init(load).as_ref()
    }

    /// The unwind information of the Go function at a stated address.
    fn go_function(&self, id: FileId, at: u64) -> Option<&Unwind> {
        self.known.get(id.index())?.go_program()?.at(at)
    }

    /// All unwind information of a file, for making tables.
    fn whole(&self, id: FileId) -> Option<&Unwind> {
        let module = self.module(id)?;
        let known = self.known.get(id.index())?;
        if known.go_program().is_none() {
            return Some(module);
        }
        known.lent.set(self.round);
        known.whole.get_or_init(|| Some(self.made(id, self.take_sections(id)?))).as_ref()
    }

    fn take_sections(&self, id: FileId) -> Option<UnwindSections> {
        self.files.borrow_mut().take_unwind_sections(id)
    }

    fn made(&self, id: FileId, sections: UnwindSections) -> Unwind {
        let build_id = self.with_elf(id, |elf| elf.build_id.clone()).flatten();
        let mut shelf = self.shelf().map(RefCell::borrow_mut);
        let kept = shelf.as_deref_mut().zip(build_id.as_deref());
        let module = module_of(sections, self.machine.code(), kept);
        self.room.add(module.bytes());
        module
    }

    /// [`Code::bound`], unless that was done recently.
    pub(crate) fn bound_sometimes(&mut self, most: usize) {
        self.room.most = most;
        if self.bounded.is_none_or(|last| last.elapsed() >= IN_USE) {
            self.bounded = Some(Instant::now());
            self.room.early = 0;
            self.bound(most);
        }
    }

    /// [`Code::bound`], if there is far more than the last call of [`Code::bound_sometimes`] allowed.
    pub(crate) fn make_room(&mut self) {
        if self.room.is_short() {
            let before = self.room.loaded.get();
            self.bound(self.room.most);
            let forgotten = before.saturating_sub(self.room.loaded.get());
            self.room.early += forgotten.max(self.room.most / Room::LOOK);
        }
    }

    /// Drops unwind information beyond `most` bytes, least recently used files first. It is read again
    /// when needed. Information requested since the last call stays.
    pub(crate) fn bound(&mut self, most: usize) {
        let round = self.round;
        self.round = round.wrapping_add(1);
        // The source of tables is not needed for unwinding.
        self.known
            .iter_mut()
            .filter(|known| known.lent.get() != round)
            .for_each(|known| known.whole = OnceCell::new());
        let mut total: usize = self.known.iter().map(Known::bytes).sum();
        self.room.loaded.set(total);
        if total <= most {
            return;
        }
        let files = self.files.get_mut();
        let mut old: Vec<FileId> =
            files.ids().filter(|id| self.known[id.index()].asked.get() != round).collect();
        old.sort_by_key(|id| std::cmp::Reverse(round.wrapping_sub(self.known[id.index()].asked.get())));
        for id in old {
            let known = &mut self.known[id.index()];
            let bytes = known.bytes();
            if bytes == 0 || !files.get(id).can_be_read_again() {
                continue;
            }
            known.forget();
            total = total.saturating_sub(bytes);
            if total <= most {
                break;
            }
        }
        self.room.loaded.set(total);
    }

    /// Whether a search for unmapped files is due.
    pub(crate) fn is_closing_due(&self) -> bool {
        self.closed.is_none_or(|last| last.elapsed() >= CLOSING) && self.files.borrow().are_many()
    }

    /// Closes files and drops their unwind information, except those that are `mapped`, or were since the last call: records of
    /// ended processes may still come.
    pub(crate) fn close_all_but(&mut self, mapped: &FxHashSet<FileId>) {
        self.closed = Some(Instant::now());
        let lately = std::mem::take(&mut self.mapped_lately);
        let files = self.files.get_mut();
        let unused = |id: &FileId| !mapped.contains(id) && !lately.contains(id);
        // Files without frames first: symbols of the others are still to be read.
        let (wanted, other): (Vec<FileId>, Vec<FileId>) =
            files.ids().filter(unused).partition(|id| self.known[id.index()].dso.is_some());
        for (id, is_wanted) in
            other.into_iter().map(|id| (id, false)).chain(wanted.into_iter().map(|id| (id, true)))
        {
            files.close(id, is_wanted);
            self.known[id.index()].forget();
        }
    }

    /// Looks for an interpreter in a file mapped by a process with this executable, unless that was done.
    pub(crate) fn look_for_interpreter(&mut self, id: FileId, executable: &[u8]) {
        let file = self.files.get_mut().get(id);
        let path = &*file.key().path;
        let is_likely = plumb_interpreters::is_likely(path);
        if (is_likely || path == executable) && !self.interpreters.contains_key(&id) {
            let found = file.open_file().and_then(|file| plumb_interpreters::find(file, is_likely));
            self.interpreters.insert(id, found);
        }
    }

    /// The name of the interpreter in a file, if it has an unknown version.
    pub(crate) fn unknown_interpreter(&self, id: FileId) -> Option<&str> {
        match self.interpreters.get(&id)?.as_ref()? {
            Detected::Unknown(name) => Some(name),
            Detected::Known(_) => None,
        }
    }

    /// The part of its interpreter's loop that contains an address of a mapping.
    pub(crate) fn loop_part(&self, mapping: &Vma, at: u64) -> Option<LoopPart> {
        let Backing::File(id) = mapping.backing else { return None };
        let interpreter = self.interpreter(id)?;
        let stated = self.files.borrow().get(id).stated(mapping.file_offset(at))?;
        interpreter.lists()?.loop_part(stated)
    }

    /// The interpreter in a file, if one was found.
    pub(crate) fn interpreter(&self, id: FileId) -> Option<&dyn Interpreter> {
        match self.interpreters.get(&id)?.as_ref()? {
            Detected::Known(interpreter) => Some(&**interpreter),
            Detected::Unknown(_) => None,
        }
    }

    /// Copies code of a file; false unless all of it can be read.
    pub(crate) fn read_text(&self, id: FileId, offset: FileOffset, to: &mut [u8]) -> bool {
        let files = self.files.borrow();
        let fetch = |at: u64, to: &mut [u8]| files.get(id).read_up_to(FileOffset(at), to).unwrap_or_default();
        self.text.borrow_mut().read(id, offset.0, to, fetch)
    }

    /// Uses tables from now on, and has them made.
    pub(crate) fn use_tables(&mut self, shelf: TableLoader) {
        self.shelf = Some(RefCell::new(shelf));
    }

    pub(crate) fn shelf(&self) -> Option<&RefCell<TableLoader>> {
        self.shelf.as_ref()
    }

    fn note_lookup(&self, id: FileId) {
        if let Some(known) = self.known.get(id.index()) {
            known.lookups.set(known.lookups.get().one_more());
        }
    }

    /// Takes the tables that are ready, and requests those of files that are worth one.
    pub(crate) fn look_at_tables(&mut self) {
        let Some(shelf) = &mut self.shelf else { return };
        let shelf = shelf.get_mut();
        for (id, table) in shelf.take() {
            let Some(cell) = self.known.get_mut(id.index()).map(|known| &mut known.module) else { continue };
            let module = cell.take().flatten().map(|module| module.with_table(table));
            *cell = module.map_or_else(OnceCell::new, |module| OnceCell::from(Some(module)));
        }
        let files = self.files.get_mut();
        for (id, Known { module, go, lookups, .. }) in files.ids().zip(&self.known) {
            // A table of a Go program would lack Go's own rules.
            let Some(module) =
                module.get().and_then(Option::as_ref).filter(|_| !matches!(go.get(), Some(Some(_))))
            else {
                continue;
            };
            if !lookups.get().are_worth_a_table(module) {
                continue;
            }
            lookups.set(Lookups::ASKED);
            let file = files.get(id);
            let (Some(elf), Some(open)) = (file.elf(), file.open_file()) else { continue };
            let (Some(build_id), Ok(open)) = (&elf.build_id, open.try_clone()) else { continue };
            shelf.want(id, build_id, elf.clone(), open);
        }
    }

    /// The vdso's unwind information, and its code segments.
    pub(crate) fn vdso_parts(&self) -> Option<UnwindInfoRef<'_>> {
        let VdsoImage { elf, module } = self.vdso.image()?;
        let (build_id, segments) = (elf.build_id.clone(), segments_of(elf));
        Some(UnwindInfoRef { module, build_id, segments, interpreter: None, shelf: self.shelf() })
    }

    /// The unwind information of a file, and its code segments.
    pub(crate) fn lend(&self, backing: Backing) -> Option<UnwindInfoRef<'_>> {
        match backing {
            Backing::Anonymous => None,
            Backing::Vdso => self.vdso_parts(),
            Backing::File(id) => {
                let (build_id, segments) =
                    self.with_elf(id, |elf| (elf.build_id.clone(), segments_of(elf)))?;
                let interpreter = self.interpreter(id).map(|interpreter| interpreter.root());
                Some(UnwindInfoRef {
                    module: self.whole(id)?,
                    build_id,
                    segments,
                    interpreter,
                    shelf: self.shelf(),
                })
            }
        }
    }

    /// Forgets the rows of all files.
    pub(crate) fn forget_rows(&mut self) {
        self.known.iter_mut().for_each(|known| known.dso = None);
        self.vdso.forget_row();
    }

    /// Calls `ask` with a file's ELF headers.
    pub(crate) fn with_elf<T>(&self, id: FileId, ask: impl FnOnce(&Elf) -> T) -> Option<T> {
        self.files.borrow().get(id).elf().map(ask)
    }

    /// Returns the files behind DSOs whose paths have become invalid.
    pub(crate) fn vanished(&self) -> Vec<(DsoId, File)> {
        let files = self.files.borrow();
        let of_profile = |(id, file): (FileId, &File)| {
            let dso = self.known.get(id.index()).and_then(|known| known.dso)?;
            Some((dso, file.try_clone().ok()?))
        };
        files.vanished().filter_map(of_profile).collect()
    }

    /// Whether a file can't be opened.
    pub(crate) fn is_unreadable(&self, id: FileId) -> bool {
        self.files.borrow().get(id).unreadable().is_some()
    }

    /// Whether the name of a file has this prefix.
    pub(crate) fn is_named(&self, id: FileId, prefix: &[u8]) -> bool {
        let files = self.files.borrow();
        let path = &files.get(id).key().path;
        path.rsplit(|&byte| byte == b'/').next().is_some_and(|name| name.starts_with(prefix))
    }

    /// Locates the unwind rules of an address of a mapping.
    pub(crate) fn located(&self, mapping: &Vma, pc: Avma) -> Located<'_, Vec<u8>> {
        let (module, stated) = match mapping.backing {
            Backing::Anonymous => return Located::NoInfo,
            Backing::Vdso => match self.vdso.image() {
                Some(vdso) => (Some(&vdso.module), vdso.elf.stated(mapping.file_offset(pc.0))),
                None => return Located::Unreadable,
            },
            Backing::File(id) if self.is_unreadable(id) => return Located::Unreadable,
            Backing::File(id) => {
                let stated = self.files.borrow().get(id).stated(mapping.file_offset(pc.0));
                self.note_lookup(id);
                let module = self.module(id);
                (stated.and_then(|at| self.go_function(id, at)).or(module), stated)
            }
        };
        match (module, stated) {
            (Some(module), Some(stated)) => Located::Module { module, bias: pc.0.wrapping_sub(stated) },
            _ => Located::NoInfo,
        }
    }

    /// The DSO of a mapping, and the address in it of run-time address `at`. `owner` is the process of anonymous
    /// memory.
    pub(crate) fn resolve(
        &mut self,
        profile: &mut Profile,
        mapping: &Vma,
        at: u64,
        owner: u32,
    ) -> (DsoId, Address) {
        let offset = mapping.file_offset(at);
        match mapping.backing {
            Backing::Anonymous => (anonymous(profile, owner), Address(at)),
            Backing::Vdso => {
                let stated = self.vdso.image().and_then(|vdso| vdso.elf.stated(offset)).unwrap_or(offset.0);
                (self.vdso.dso(profile), Address(stated))
            }
            Backing::File(id) => {
                let stated = self.files.get_mut().get(id).stated(offset);
                (self.file_dso(profile, id), Address(stated.unwrap_or(offset.0)))
            }
        }
    }

    fn file_dso(&mut self, profile: &mut Profile, id: FileId) -> DsoId {
        if let Some(dso) = self.known.get(id.index()).and_then(|known| known.dso) {
            return dso;
        }
        let file = self.files.get_mut().get(id);
        let path = profile.strings.add(&String::from_utf8_lossy(&file.key().path));
        let build_id = file.build_id().and_then(BuildId::new);
        let addresses = if file.elf().is_some() { AddressSpace::Svma } else { AddressSpace::FileOffset };
        let dso = profile.dsos.add(Dso { path, build_id, kind: DsoKind::File, addresses });
        if let Some(known) = self.known.get_mut(id.index()) {
            known.dso = Some(dso);
        }
        dso
    }
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
