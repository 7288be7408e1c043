//! The loaded tables of files, and their eviction when no space is left.
//!
//! A program may be reading a table during its eviction, so its memory is not reused for a while.
//!
//! Elsewhere: the content of a table, the memory itself.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aya::maps::{Array, MapData};
use plumb_capture_api::UnwindInfoRef;
use rustc_hash::FxHashMap;

use crate::chunks::{Chunks, Place};
use crate::file_table::{self, Loadable, loadable};
use crate::layouts::Layouts;
use crate::wire::{
    File, MAX_FILES, MAX_PIECES, STATE_ASKED, STATE_MEMORY, STATE_NONE, STATE_READY, STATE_UNKNOWN,
    TABLE_PIECES,
};

/// Time after eviction when no program can be reading a table any more: unwinding takes microseconds.
const GRACE: Duration = Duration::from_secs(1);

/// The loaded tables.
pub(crate) struct Resident {
    /// The programs' information on files, by number.
    files: Array<MapData, File>,
    chunks: Chunks,
    layouts: Layouts,
    /// Loaded tables, by file number.
    loaded: FxHashMap<u32, Loaded>,
    /// Evicted pieces, with the time of eviction.
    leaving: VecDeque<(Instant, Piece)>,
    /// Numbers for the second and later pieces of tables.
    free: Vec<u32>,
    /// Number of evicted tables.
    evicted: u64,
    /// Numbers for files that processes have copied to anonymous memory, by the recorder's file number.
    copies: FxHashMap<usize, u32>,
}

/// A piece of a table.
struct Piece {
    place: Place,
    /// Number of the piece; `None` for the first piece, which has the number of its file.
    number: Option<u32>,
}

/// A table of a file.
#[derive(Clone)]
struct Loaded {
    /// The pieces; files with the same code share them.
    pieces: Arc<Vec<Piece>>,
    /// The place of its first piece.
    file: File,
    build_id: Option<Box<[u8]>>,
}

impl Resident {
    /// Without tables.
    pub fn new(files: Array<MapData, File>, chunks: Chunks, layouts: Layouts) -> Self {
        let free = (MAX_FILES - MAX_PIECES..MAX_FILES).collect();
        Self {
            files,
            chunks,
            layouts,
            loaded: FxHashMap::default(),
            leaving: VecDeque::new(),
            free,
            evicted: 0,
            copies: FxHashMap::default(),
        }
    }

    /// The number for a file that a process has copied to anonymous memory. The programs can't identify the file themselves.
    pub fn number_of_copy(&mut self, file: usize) -> Option<u32> {
        if let Some(&known) = self.copies.get(&file) {
            return Some(known);
        }
        let number = self.free.pop()?;
        let _ = self.files.set(number, File::default(), 0);
        self.copies.insert(file, number);
        Some(number)
    }

    /// Bytes of the tables' memory.
    pub fn bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// Number of tables evicted to make space for others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Whether no evicted memory is waiting to be reused: until then a new table would be discarded.
    pub fn can_load(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Gives the programs the table of a file, or reports that it has none. Returns whether they won't ask again.
    pub fn supply(&mut self, number: u32, lent: Option<&UnwindInfoRef<'_>>) -> bool {
        let state = self.load(number, lent).unwrap_or(STATE_NONE);
        if state != STATE_READY {
            let _ = self.files.set(number, File { state, ..File::default() }, 0);
        }
        state != STATE_UNKNOWN
    }

    /// Tells the programs that a file is generated code in memory.
    pub fn mark_memory(&mut self, number: u32) {
        let _ = self.files.set(number, File { state: STATE_MEMORY, ..File::default() }, 0);
    }

    /// Reuses the memory of evicted tables that no program can be reading any more.
    pub fn give_back(&mut self) {
        while let Some((since, _)) = self.leaving.front()
            && since.elapsed() > GRACE
            && let Some((_, piece)) = self.leaving.pop_front()
        {
            self.free_piece(piece);
        }
    }

    /// Loads the table of a file. Returns the file's resulting state.
    fn load(&mut self, number: u32, lent: Option<&UnwindInfoRef<'_>>) -> io::Result<u32> {
        let (Some(lent), true) = (lent, self.can_load()) else {
            // Two CPUs may have asked for a table that has been loaded by now.
            return Ok(if self.loaded.contains_key(&number) { STATE_READY } else { STATE_UNKNOWN });
        };
        if let Some(same) = self.same_table(lent) {
            self.show(number, same)?;
            return Ok(STATE_READY);
        }
        let Some(table) = loadable(lent) else { return Ok(STATE_NONE) };
        let size = table.bytes.len();
        let parts = table.pieces(self.chunks.largest());
        // The table would not fit even into empty memory.
        if parts.len() > TABLE_PIECES as usize || size > self.chunks.room() {
            return Ok(STATE_NONE);
        }
        let Some((pieces, file)) = self.put(parts)? else {
            self.evict();
            return Ok(STATE_UNKNOWN);
        };
        let file = match self.layouts.number(lent.interpreter) {
            Some(layout) => File { layout, ..file },
            None => File { script: 0, ..file },
        };
        self.show(number, Loaded { pieces: Arc::new(pieces), file, build_id: lent.build_id.clone() })?;
        Ok(STATE_READY)
    }

    /// Stores the pieces of a table. Returns them and the location of the first, or `None` if no space is left.
    fn put(&mut self, parts: Vec<Loadable>) -> io::Result<Option<(Vec<Piece>, File)>> {
        let mut pieces = Vec::new();
        let (mut first, mut next) = (File::default(), 0);
        // Last piece first, as each piece refers to the next one.
        for (index, part) in parts.into_iter().enumerate().rev() {
            let number = if index == 0 { None } else { self.free.pop() };
            let place = if index == 0 || number.is_some() { self.chunks.put(&part.bytes)? } else { None };
            let Some(place) = place else {
                self.free.extend(number);
                pieces.into_iter().for_each(|piece| self.free_piece(piece));
                return Ok(None);
            };
            let at = place.bytes.start as u32;
            let (pages_at, rows_at) = (part.file.pages_at + at, part.file.rows_at + at);
            first = File { chunk: place.chunk, rules_at: at, pages_at, rows_at, next, ..part.file };
            if let Some(number) = number {
                self.files.set(number, first, 0).map_err(io::Error::other)?;
                next = number;
            }
            pieces.push(Piece { place, number });
        }
        Ok(Some((pieces, first)))
    }

    fn free_piece(&mut self, Piece { place, number }: Piece) {
        self.chunks.give_back(place);
        self.free.extend(number);
    }

    /// A loaded table of a file with the same build ID and the same code at the same offsets: in
    /// another container, for example.
    fn same_table(&self, lent: &UnwindInfoRef<'_>) -> Option<Loaded> {
        let build_id = lent.build_id.as_ref()?;
        let segments = file_table::segments(lent)?;
        let mut all = self.loaded.values();
        let is_same =
            |one: &&Loaded| one.build_id.as_ref() == Some(build_id) && one.file.segments == segments;
        all.find(is_same).cloned()
    }

    /// Publishes a file's table to the programs.
    fn show(&mut self, number: u32, loaded: Loaded) -> io::Result<()> {
        // The state is set last, when all other data is in place.
        for state in [STATE_ASKED, STATE_READY] {
            self.files.set(number, File { state, ..loaded.file }, 0).map_err(io::Error::other)?;
        }
        self.loaded.insert(number, loaded);
        Ok(())
    }

    /// Evicts the least used tables, half of the memory. They are loaded again on demand.
    fn evict(&mut self) {
        let mut numbers: Vec<(u32, u32)> = Vec::new();
        for &number in self.loaded.keys() {
            let used = self.files.get(&number, 0).map_or(0, |file| file.used);
            numbers.push((used, number));
        }
        numbers.sort_unstable();
        let goal = self.chunks.room() / 2;
        let mut freed = 0;
        for (_, number) in numbers {
            if freed >= goal {
                break;
            }
            let Some(Loaded { pieces, file, .. }) = self.loaded.remove(&number) else { continue };
            let _ = self.files.set(number, File { state: STATE_UNKNOWN, ..file }, 0);
            // Unless another file shares it.
            if let Ok(pieces) = Arc::try_unwrap(pieces) {
                freed += pieces.iter().map(|piece| piece.place.bytes.len()).sum::<usize>();
                self.leaving.extend(pieces.into_iter().map(|piece| (Instant::now(), piece)));
                self.evicted += 1;
            }
        }
    }
}
