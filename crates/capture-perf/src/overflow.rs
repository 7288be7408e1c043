//! Empties a ring into memory, and from there into a file, while its records can't be processed.
//!
//! A ring holds a fraction of a second. Work on the profile that takes longer would lose samples: a thread moves
//! records out of the rings until it is done. Otherwise records are read in place without a copy.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumb_process::usage::Priority;

use crate::merge::{Feed, Merge};
use crate::records::Found;

/// Time between two checks of the rings. The smallest likely ring holds twice as much.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes moved out of a ring that stay in memory: a machine has many rings. The rest goes to a file.
const IN_MEMORY: usize = 1 << 20;
/// Most bytes moved out of a ring, to memory and file together: beyond that the kernel drops records, and counts them.
const MOST: u64 = 1 << 30;
/// The limit if no file can be written.
const MOST_IN_MEMORY: usize = 128 << 20;

/// A feed and the records moved out of it.
#[derive(Debug)]
pub(crate) struct OverflowBuffer<F> {
    feed: F,
    /// Complete records, from `given_back` on.
    moved: Vec<u8>,
    given_back: usize,
    /// Records moved after these.
    later: Later,
}

/// Complete records in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    bytes: usize,
    records: u64,
}

/// Records in a nameless file, oldest first.
#[derive(Debug, Default)]
struct Later {
    /// Directory of the file; `None`: that of temporary files.
    directory: Option<Arc<Path>>,
    file: Option<File>,
    /// Blocks that were written and not yet read back.
    blocks: VecDeque<Block>,
    /// Records that could not be read back.
    lost: u64,
    /// File offset of the oldest block, and of the next one to be written.
    first: u64,
    end: u64,
}

impl Later {
    /// Appends complete records. Returns whether that was possible.
    fn append(&mut self, pieces: [&[u8]; 2]) -> bool {
        let bytes = pieces[0].len() + pieces[1].len();
        if self.blocks.is_empty() {
            (self.first, self.end) = (0, 0);
        }
        if self.end.saturating_add(bytes as u64) > MOST {
            return false;
        }
        if self.file.is_none() {
            self.file = nameless(self.directory.as_deref()).ok();
        }
        let Some(file) = &self.file else { return false };
        let mut at = self.end;
        for piece in pieces {
            if file.write_all_at(piece, at).is_err() {
                return false;
            }
            at += piece.len() as u64;
        }
        self.end = at;
        self.blocks.push_back(Block { bytes, records: count(pieces) });
        true
    }

    /// Reads the oldest block into `to`, replacing its contents. Returns false if there is none. The records of an unreadable block
    /// are counted as lost.
    fn take(&mut self, to: &mut Vec<u8>) -> bool {
        while let Some(Block { bytes, records }) = self.blocks.pop_front() {
            to.clear();
            to.resize(bytes, 0);
            let read = self.file.as_ref().map(|file| file.read_exact_at(to, self.first));
            self.first += bytes as u64;
            if matches!(read, Some(Ok(()))) {
                return true;
            }
            self.lost = self.lost.saturating_add(records);
        }
        to.clear();
        false
    }
}

/// Number of records.
fn count(pieces: [&[u8]; 2]) -> u64 {
    let (mut at, mut records) = (0, 0);
    while let Some(found) = Found::at(pieces, at) {
        at += found.len();
        records += 1;
    }
    records
}

/// A file that disappears when it is closed: preferably on a disk, as /tmp may be in memory.
fn nameless(directory: Option<&Path>) -> io::Result<File> {
    let create = |folder: &Path| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let path = folder.join(format!(".plumb-{}-{since}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    };
    match directory {
        Some(directory) => create(directory),
        None => create(Path::new("/var/tmp")).or_else(|_: io::Error| create(&std::env::temp_dir())),
    }
}

impl<F: Feed> OverflowBuffer<F> {
    pub fn new(feed: F) -> Self {
        Self { feed, moved: Vec::new(), given_back: 0, later: Later::default() }
    }

    /// Sets the directory of the file.
    pub fn in_directory(mut self, directory: Option<Arc<Path>>) -> Self {
        self.later.directory = directory;
        self
    }

    /// Moves the unread records out of the ring.
    fn spill(&mut self) {
        self.feed.look();
        let unread = self.feed.unread();
        let bytes = unread[0].len() + unread[1].len();
        if self.given_back > self.moved.len() / 2 {
            self.moved.drain(..self.given_back);
            self.given_back = 0;
        }
        if bytes == 0 {
            return;
        }
        let mut moved = 0;
        while let Some(end) = some(unread, moved) {
            let block = part(unread, moved..end);
            // Records in memory precede those in the file.
            let is_first = self.later.blocks.is_empty();
            let fits = |most| is_first && self.moved.len() + (end - moved) <= most;
            let is_in_file = !fits(IN_MEMORY) && !self.moved.is_empty() && self.later.append(block);
            if !is_in_file && !fits(MOST_IN_MEMORY) {
                break;
            }
            if !is_in_file {
                block.iter().for_each(|piece| self.moved.extend_from_slice(piece));
            }
            moved = end;
        }
        self.feed.release(moved);
    }
}

/// End of the complete records from `at` on that are kept in memory together: at least one. `None` if there is none.
fn some(pieces: [&[u8]; 2], at: usize) -> Option<usize> {
    let mut end = at + Found::at(pieces, at)?.len();
    while let Some(found) = Found::at(pieces, end)
        && end + found.len() - at <= IN_MEMORY
    {
        end += found.len();
    }
    Some(end)
}

/// A range of the bytes in two pieces.
fn part(pieces: [&[u8]; 2], range: Range<usize>) -> [&[u8]; 2] {
    let first = pieces[0].len();
    let within = |piece: &'_ [u8], before: usize| {
        range.start.saturating_sub(before).min(piece.len())..range.end.saturating_sub(before).min(piece.len())
    };
    [&pieces[0][within(pieces[0], 0)], &pieces[1][within(pieces[1], first)]]
}

impl<F: Feed> Feed for OverflowBuffer<F> {
    fn look(&mut self) {
        if self.moved.is_empty() {
            self.feed.look();
        } else {
            self.spill();
        }
    }

    fn unread(&self) -> [&[u8]; 2] {
        match self.moved.get(self.given_back..) {
            Some(moved) if !self.moved.is_empty() => [moved, &[]],
            _ => self.feed.unread(),
        }
    }

    fn release(&mut self, bytes: usize) {
        if self.moved.is_empty() {
            return self.feed.release(bytes);
        }
        self.given_back += bytes;
        if self.given_back >= self.moved.len() {
            self.given_back = 0;
            if !self.later.take(&mut self.moved) {
                self.moved = Vec::new();
            }
        } else {
            // Reading moved records back takes time as well.
            self.spill();
        }
    }

    fn make_room(&mut self) {
        self.spill();
    }
}

impl<F: Feed> Merge<OverflowBuffer<F>> {
    /// Number of records that were moved to a file and could not be read back.
    pub fn lost(&self) -> u64 {
        self.all_feeds().iter().map(|feed| feed.later.lost).sum()
    }
}

impl<F: Feed + Send> Merge<OverflowBuffer<F>> {
    /// Runs `work`, while a thread moves records out of the rings, and calls `others` to empty other queues.
    pub fn moving<R>(&mut self, work: impl FnOnce() -> R, mut others: impl FnMut() + Send) -> R {
        std::thread::scope(|scope| {
            // The thread inherits the priority.
            let _priority = Priority::raise();
            let (at_work, done) = channel::<()>();
            let mover = move || {
                while done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    self.feeds().for_each(OverflowBuffer::spill);
                    others();
                }
            };
            // Without a thread, there is still the time until the rings are full.
            let _ = std::thread::Builder::new().name("move".into()).spawn_scoped(scope, mover);
            // Dropped when the work is done, or panics.
            let _at_work = at_work;
            work()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::attr::tests::parse_info;
    use crate::records::tests::exit_record;

    /// A ring with room for ten records; a full one gets no more.
    #[derive(Default)]
    struct Small {
        bytes: Vec<u8>,
        next: u64,
    }

    impl Feed for Small {
        /// Adds ten records, as far as they fit.
        fn look(&mut self) {
            let record = exit_record(0).len();
            for _ in 0..10 {
                self.next += 1;
                if self.bytes.len() < 10 * record {
                    self.bytes.extend(exit_record(self.next));
                }
            }
        }
        fn unread(&self) -> [&[u8]; 2] {
            let (first, second) = self.bytes.split_at(self.bytes.len() / 3);
            [first, second]
        }
        fn release(&mut self, bytes: usize) {
            self.bytes.drain(..bytes);
        }
    }

    fn times(merge: &mut Merge<OverflowBuffer<Small>>) -> Vec<u64> {
        let mut times = Vec::new();
        merge.drain(u64::MAX, |record| times.push(record.timestamp().expect("records have a time")));
        times
    }

    #[test]
    fn what_comes_during_work_waits_in_order() {
        let mut merge = Merge::new(vec![OverflowBuffer::new(Small::default())], parse_info());
        assert_eq!(times(&mut merge), (1..=10).collect::<Vec<_>>(), "in place");
        merge.moving(|| std::thread::sleep(5 * PAUSE), || {});
        let later = times(&mut merge);
        assert!(later.len() > 20, "several looks: {}", later.len());
        assert_eq!(
            later,
            (11..11 + later.len() as u64).collect::<Vec<_>>(),
            "none is lost and none comes twice"
        );
        let next = 11 + later.len() as u64;
        assert_eq!(times(&mut merge), (next..next + 10).collect::<Vec<_>>(), "in place again");
    }

    /// A ring with room for eight records, to which the kernel may write at any time.
    #[derive(Default)]
    struct Written {
        new: Vec<u8>,
        used: usize,
        last: u64,
        lost: usize,
    }

    impl Written {
        fn write(&mut self) {
            self.last += 1;
            let record = exit_record(self.last);
            if self.used + record.len() > 8 * record.len() {
                self.lost += 1;
                return;
            }
            self.used += record.len();
            self.new.extend(record);
        }
    }

    /// The reading end of `Written`.
    struct Reader(Rc<RefCell<Written>>, Vec<u8>);

    impl Feed for Reader {
        fn look(&mut self) {
            self.1.append(&mut self.0.borrow_mut().new);
        }
        fn unread(&self) -> [&[u8]; 2] {
            [&self.1, &[]]
        }
        fn release(&mut self, bytes: usize) {
            self.1.drain(..bytes);
            self.0.borrow_mut().used -= bytes;
        }
    }

    #[test]
    fn what_comes_while_records_are_read_slowly_waits_in_order() {
        let ring = Rc::new(RefCell::new(Written::default()));
        let mut merge =
            Merge::new(vec![OverflowBuffer::new(Reader(Rc::clone(&ring), Vec::new()))], parse_info());
        (0..4).for_each(|_| ring.borrow_mut().write());
        let mut all = Vec::new();
        merge.drain(u64::MAX, |record| {
            all.push(record.timestamp().expect("records have a time"));
            // Each record read is followed by two new ones, for a while.
            let more = if all.len() < 20 { 2 } else { 0 };
            (0..more).for_each(|_| ring.borrow_mut().write());
            std::thread::sleep(PAUSE);
        });
        merge.drain(u64::MAX, |record| all.push(record.timestamp().expect("records have a time")));
        assert_eq!(ring.borrow().lost, 0);
        assert_eq!(all, (1..=ring.borrow().last).collect::<Vec<_>>(), "each once, in order");
    }

    #[test]
    fn work_that_panics_ends_the_moving() {
        let mut merge = Merge::new(vec![OverflowBuffer::new(Small::default())], parse_info());
        let work = std::panic::AssertUnwindSafe(|| merge.moving(|| panic!("as expected"), || {}));
        assert!(std::panic::catch_unwind(work).is_err());
    }

    #[test]
    fn what_comes_during_long_work_waits_in_a_file() {
        let mut merge = Merge::new(vec![OverflowBuffer::new(Small::default())], parse_info());
        assert_eq!(times(&mut merge), (1..=10).collect::<Vec<_>>());
        // Far more than fits in memory, as with stack copies.
        let looks = 10 * IN_MEMORY / (10 * exit_record(0).len());
        merge.feeds().for_each(|feed| (0..looks).for_each(|_| feed.spill()));
        for feed in merge.feeds() {
            assert!(feed.moved.len() <= IN_MEMORY, "{} bytes in memory", feed.moved.len());
            assert!(feed.later.end > 5 * IN_MEMORY as u64, "{} bytes in the file", feed.later.end);
        }
        let later = times(&mut merge);
        assert!(later.len() >= 10 * looks, "{} of {}", later.len(), 10 * looks);
        assert!(later.iter().copied().eq(11..11 + later.len() as u64), "in order, each once");
        let next = 11 + later.len() as u64;
        assert_eq!(times(&mut merge), (next..next + 10).collect::<Vec<_>>(), "in place again");
    }

    /// A large ring that was not read for a while.
    struct Full(Vec<u8>);

    impl Feed for Full {
        fn look(&mut self) {}
        fn unread(&self) -> [&[u8]; 2] {
            // Split in the middle of a record.
            let (first, second) = self.0.split_at((self.0.len() / 3 * 2 + 1).min(self.0.len()));
            [first, second]
        }
        fn release(&mut self, bytes: usize) {
            self.0.drain(..bytes);
        }
    }

    #[test]
    fn a_large_ring_is_moved_to_the_file_but_for_a_part() {
        let records = 5 * IN_MEMORY as u64 / exit_record(0).len() as u64;
        let ring = Full((1..=records).flat_map(exit_record).collect());
        let mut merge = Merge::new(vec![OverflowBuffer::new(ring)], parse_info());
        merge.feeds().for_each(OverflowBuffer::spill);
        for feed in merge.feeds() {
            assert!(feed.feed.0.is_empty(), "all was moved");
            assert!(feed.moved.capacity() <= 2 * IN_MEMORY, "{} bytes in memory", feed.moved.capacity());
            assert!(feed.later.blocks.iter().all(|block| block.bytes <= IN_MEMORY), "each fits later");
        }
        let mut times = Vec::new();
        merge.drain(u64::MAX, |record| times.push(record.timestamp().expect("records have a time")));
        assert!(times.iter().copied().eq(1..=records), "in order, each once");
    }

    #[test]
    fn records_that_cannot_be_read_again_are_counted_as_lost() {
        let mut merge = Merge::new(vec![OverflowBuffer::new(Small::default())], parse_info());
        let looks = 2 * IN_MEMORY / (10 * exit_record(0).len());
        merge.feeds().for_each(|feed| (0..looks).for_each(|_| feed.spill()));
        for feed in merge.feeds() {
            assert!(!feed.later.blocks.is_empty(), "it was needed");
            // As if the disk failed: the device takes all bytes and returns none.
            feed.later.file =
                Some(OpenOptions::new().read(true).write(true).open("/dev/null").expect("it is there"));
        }
        let mut later = times(&mut merge);
        // The lost records came after those in memory, and before those that come now.
        later.extend(times(&mut merge));
        let last = *later.last().expect("some are left");
        let gone = last - later.len() as u64;
        assert!(gone > 1000, "{gone}");
        assert_eq!(merge.lost(), gone, "each that came and was not handed out");
    }

    #[test]
    fn what_is_moved_is_bounded() {
        let mut full = OverflowBuffer::new(Small::default());
        full.moved = vec![0; MOST_IN_MEMORY];
        full.later.end = MOST;
        full.later.blocks.push_back(Block { bytes: 1, records: 1 });
        full.spill();
        assert_eq!((full.moved.len(), full.later.blocks.len()), (MOST_IN_MEMORY, 1));
        assert!(!full.feed.bytes.is_empty(), "it stays where it was");
    }
}
