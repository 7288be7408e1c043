//! Limits, order and corruption of a spool, on real file systems.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::process::Command;

use plumb_fixtures::{Requirement, needs, skip};

use super::*;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plumb-spool-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn spool(&self, max_bytes: u64) -> Result<Spool, AgentError> {
        Spool::open(&SpoolOptions { directory: self.0.clone(), max_bytes })
    }

    /// Opens the spool again, retrying while a process spawned by another test holds a copy of the lock until its exec.
    fn reopened(&self, max_bytes: u64) -> Spool {
        loop {
            match self.spool(max_bytes) {
                Err(AgentError::SpoolInUse(_)) => std::thread::yield_now(),
                opened => return opened.unwrap(),
            }
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn count(samples: u64) -> SampleCount {
    SampleCount { samples, weights: [10, 100, 1000].map(|each| each * samples) }
}

fn request(samples: u64, bytes: usize) -> Request {
    Request { body: vec![samples as u8; bytes], count: count(samples) }
}

fn drain(spool: &mut Spool) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(oldest) = spool.oldest() {
        seen.push(oldest.unwrap().count.samples);
        spool.remove_oldest();
    }
    seen
}

#[test]
fn requests_leave_in_the_order_in_which_they_came() {
    let directory = Directory::new("order");
    let mut spool = directory.spool(1000).unwrap();
    (1..=3).for_each(|samples| assert_eq!(spool.push(&request(samples, 10)).0, count(0)));
    drop(spool);
    // A restarted agent continues with them, and one restarted after that does too.
    let mut spool = directory.reopened(1000);
    assert_eq!((spool.len(), spool.count()), (3, count(6)));
    spool.push(&request(4, 10));
    assert_eq!(drain(&mut spool), [1, 2, 3, 4]);
    assert!(spool.is_empty());
    let left: Vec<_> = fs::read_dir(&directory.0).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn the_oldest_go_where_there_is_no_room() {
    let directory = Directory::new("bound");
    let mut spool = directory.spool(100).unwrap();
    let mut dropped = count(0);
    for samples in 1..=5 {
        let (gone, error) = spool.push(&request(samples, 40));
        assert!(error.is_none());
        dropped += gone;
        let on_disk: u64 =
            fs::read_dir(&directory.0).unwrap().flatten().map(|entry| entry.metadata().unwrap().len()).sum();
        assert!(on_disk <= 100, "{on_disk} bytes");
    }
    assert_eq!(dropped, count(1 + 2 + 3));
    let (gone, error) = spool.push(&request(9, 101));
    assert_eq!((gone, error.unwrap().kind()), (count(9), io::ErrorKind::FileTooLarge));
    assert_eq!(drain(&mut spool), [4, 5]);
}

#[test]
fn a_torn_file_is_counted_and_not_sent() {
    let directory = Directory::new("torn");
    let mut spool = directory.spool(1000).unwrap();
    spool.push(&request(7, 50));
    spool.push(&request(8, 50));
    drop(spool);
    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory.0).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    File::options().write(true).open(&files[0]).unwrap().set_len(20).unwrap();
    // A file that its writer did not complete has no samples to count.
    fs::write(directory.0.join("0000000000000009.part"), b"x").unwrap();
    let mut spool = directory.reopened(1000);
    assert!(spool.oldest().unwrap().is_err());
    assert_eq!(spool.remove_oldest(), count(7));
    assert_eq!(drain(&mut spool), [8]);
    assert!(!directory.0.join("0000000000000009.part").exists());
}

#[test]
fn two_agents_have_two_spools() {
    let directory = Directory::new("lock");
    let first = directory.spool(100).unwrap();
    assert!(matches!(directory.spool(100), Err(AgentError::SpoolInUse(_))));
    drop(first);
    directory.reopened(100);
}

#[test]
fn a_full_disk_takes_the_oldest() {
    if !needs(Requirement::Root) {
        return;
    }
    let directory = Directory::new("full");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(&directory.0)
        .status()
        .unwrap();
    if !mounted.success() {
        skip(Requirement::Mount, "no file systems can be mounted here");
        return;
    }
    let mut spool = directory.spool(1 << 30).unwrap();
    let mut dropped = count(0);
    for samples in 1..=6 {
        let (gone, error) = spool.push(&request(samples, 20_000));
        assert!(error.is_none(), "{error:?}");
        dropped += gone;
    }
    let (gone, error) = spool.push(&request(100, 200_000));
    assert!(is_full(&error.unwrap()));
    let waiting = spool.count();
    let umounted = Command::new("umount").arg("-l").arg(&directory.0).status().unwrap();
    assert!(umounted.success());
    // Requests that were dropped for one larger than the disk are counted.
    assert_eq!(gone.samples + waiting.samples + dropped.samples, 1 + 2 + 3 + 4 + 5 + 6 + 100);
    assert!(dropped.samples >= 1 && dropped.samples <= 1 + 2 + 3, "{dropped:?}");
}

#[test]
fn names_of_earlier_agents_are_understood() {
    let of = |name: &str| Waiting::parse(name).map(|one| (one.number, one.count, one.bytes));
    let count = SampleCount { samples: 7, weights: [70, 0, 0] };
    assert_eq!(of("0000000000000003-7-70-900.otlp.gz"), Some((3, count, 900)));
    let count = SampleCount { weights: [70, 5, 0], ..count };
    assert_eq!(of("0000000000000003-7-70-5-900.otlp.gz"), Some((3, count, 900)));
    let one = Waiting { number: 3, count: SampleCount { weights: [70, 5, 6], ..count }, bytes: 900 };
    assert_eq!(Waiting::parse(&one.name()), Some(one));
    for name in ["3-7-70.otlp.gz", "3-7-70-5-6-7-900.otlp.gz", "3-7-70-x-900.otlp.gz", "3-7-70-900.part"] {
        assert_eq!(of(name), None, "{name}");
    }
}
