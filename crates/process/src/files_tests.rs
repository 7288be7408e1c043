//! Files that stay, vanish and are replaced, mapped by a real process.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::*;
use crate::{Device, RecordedFiles, parse_maps};

/// A sleeping program of our own, in a directory of its own.
struct Sleeper {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
}

impl Sleeper {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("plumb-files-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("sleeper");
        std::fs::copy("/bin/sleep", &program).unwrap();
        // A child that another test is forking holds our writing end open until its exec: ETXTBSY.
        let child = loop {
            match Command::new(&program).arg("60").spawn() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
                other => break other.unwrap(),
            }
        };
        let this = Self { child, program, folder };
        while crate::executable(this.child.id()).as_deref() != Some(this.program.as_os_str().as_bytes()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        this
    }

    fn mapping(&self) -> (FileKey, FileOrigin) {
        for _ in 0..1000 {
            let text = crate::mappings(self.child.id()).unwrap();
            let path = self.program.as_os_str().as_bytes();
            if let Some(line) = parse_maps(&text).find(|line| line.executable && line.path.starts_with(path))
            {
                return (
                    FileKey::of_line(&line).without_deleted(self.child.id()),
                    FileOrigin::Process { pid: self.child.id(), range: line.start..line.end, parent: 0 },
                );
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("the program never showed up in its own maps");
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn build_id(path: &Path) -> Option<Box<[u8]>> {
    Elf::read(File::open(path).unwrap()).unwrap().build_id
}

#[test]
fn second_mapping_opens_nothing() {
    let sleeper = Sleeper::start("twice");
    let (key, place) = sleeper.mapping();
    let mut files = Files::default();
    let first = files.add(key.clone(), &place);
    assert!(files.get(first).elf().is_some());
    // Opening it would fail, because the process and the program are gone.
    std::fs::remove_file(&sleeper.program).unwrap();
    assert_eq!(files.add(key.clone(), &FileOrigin::Process { pid: u32::MAX, range: 0..1, parent: 0 }), first);
    // Another key of the same file still finds the same row.
    let other = FileKey { generation: 7, ..key };
    assert_eq!(files.add(other, &place), first);
    assert_eq!(files.len(), 1);
}

#[test]
fn replaced_program_is_read_through_its_process() {
    let sleeper = Sleeper::start("replaced");
    let original = build_id(&sleeper.program);
    let (key, place) = sleeper.mapping();
    std::fs::remove_file(&sleeper.program).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), &sleeper.program).unwrap();
    assert_ne!(build_id(&sleeper.program), original);
    let mut files = Files::default();
    let id = files.add(key.clone(), &place);
    assert_eq!(files.get(id).unreadable(), None, "a process of our own, whoever we are");
    assert_eq!(files.get(id).elf().unwrap().build_id, original);
    // Without the process, another file at the path must not be mistaken for it.
    let gone = FileOrigin::Process { pid: u32::MAX, range: 0..1, parent: 0 };
    let mut fresh = Files::default();
    let id = fresh.add(key, &gone);
    assert_eq!(fresh.get(id).unreadable(), Some(OpenError::Replaced));
}

#[test]
fn files_that_vanish_stay_readable() {
    let sleeper = Sleeper::start("vanish");
    let original = build_id(&sleeper.program);
    let (key, place) = sleeper.mapping();
    let mut files = Files::default();
    let id = files.add(key, &place);
    files.take_unwind_sections(id).unwrap();
    assert_eq!(files.vanished().count(), 0);
    std::fs::remove_file(&sleeper.program).unwrap();
    let (vanished, file) = files.vanished().next().unwrap();
    assert_eq!((vanished, Elf::read(file).unwrap().build_id), (id, original));
}

#[test]
fn deleted_program_is_read_while_it_lives_and_missing_afterwards() {
    let sleeper = Sleeper::start("deleted");
    let original = build_id(&sleeper.program);
    std::fs::remove_file(&sleeper.program).unwrap();
    let (key, place) = sleeper.mapping();
    assert!(!key.path.ends_with(b" (deleted)"));
    let mut files = Files::default();
    let id = files.add(key.clone(), &place);
    assert_eq!(files.get(id).build_id(), original.as_deref());
    drop(sleeper);
    let mut fresh = Files::default();
    let id = fresh.add(key, &place);
    assert_eq!(fresh.get(id).unreadable(), Some(OpenError::NotFound));
    // Headers and descriptor of the file opened earlier remain usable.
    let first = files.take_unwind_sections(FileId(0)).unwrap().eh_frame.unwrap();
    assert!(files.get(FileId(0)).can_be_read_again());
    let again = files.take_unwind_sections(FileId(0)).unwrap().eh_frame.unwrap();
    assert!(!first.bytes.is_empty() && first.bytes == again.bytes, "whoever forgot them gets them again");
}

/// The kernel's end of a path is distinguished from a file name with that end by what is at the path.
#[test]
fn a_file_may_be_named_deleted() {
    let mut sleeper = Sleeper::start("named");
    let named = sleeper.folder.join("x (deleted)");
    std::fs::copy("/bin/sleep", &named).unwrap();
    let inode = std::fs::metadata(&named).unwrap().ino();
    let (pid, path) = (sleeper.child.id(), named.as_os_str().as_bytes());
    let key = |inode, path: &[u8]| FileKey { inode, ..FileKey::of_path(path) };
    for pid in [pid, 0] {
        assert_eq!(*key(inode, path).without_deleted(pid).path, *path);
        assert!(key(inode + 1, path).without_deleted(pid).path.ends_with(b"/x"), "another file is there");
        let gone = [path, b" (deleted)"].concat();
        assert_eq!(*key(inode, &gone).without_deleted(pid).path, *path);
    }
    // The program of a process, before and after it is deleted.
    sleeper.child.kill().unwrap();
    sleeper.child.wait().unwrap();
    sleeper.child = Command::new(&named).arg("60").spawn().unwrap();
    let path_of = || loop {
        let found = crate::executable(sleeper.child.id()).unwrap();
        if String::from_utf8_lossy(&found).contains("x (deleted)") {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(path_of(), path);
    std::fs::remove_file(&named).unwrap();
    assert_eq!(path_of(), path);
}

#[test]
fn recorded_file_must_have_the_recorded_build_id() {
    let path = std::env::current_exe().unwrap();
    let key = FileKey::of_path(path.as_os_str().as_bytes());
    let mut files = Files::default();
    let right = files.add(
        FileKey { build_id: build_id(&path), ..key.clone() },
        &FileOrigin::Recorded(RecordedFiles::default()),
    );
    let wrong = files.add(
        FileKey { build_id: Some([1; 20].into()), ..key },
        &FileOrigin::Recorded(RecordedFiles::default()),
    );
    assert_eq!(files.get(right).unreadable(), None);
    assert_eq!(files.get(wrong).unreadable(), Some(OpenError::Replaced));
}

#[test]
fn devices_are_not_opened() {
    let mut files = Files::default();
    let key = FileKey { device: Some(Device { major: 1, minor: 5 }), ..FileKey::of_path(b"/dev/zero") };
    let id = files.add(key, &FileOrigin::Recorded(RecordedFiles::default()));
    assert_eq!(files.get(id).unreadable(), Some(OpenError::NotRegular));
}

#[test]
fn a_file_that_was_deleted_before_it_ran_is_found_with_who_has_it_open() {
    let folder = std::env::temp_dir().join(format!("plumb-files-{}-held", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let held = File::open(&program).unwrap();
    let key =
        FileKey { inode: held.metadata().unwrap().ino(), ..FileKey::of_path(program.as_os_str().as_bytes()) };
    std::fs::remove_file(&program).unwrap();
    // The process is gone, its parent is not. The highest number is not a valid pid.
    let place = |parent| FileOrigin::Process { pid: i32::MAX as u32, range: 0x1000..0x2000, parent };
    let mut files = Files::default();
    let unknown = files.add(FileKey { inode: key.inode + 1, ..key.clone() }, &place(std::process::id()));
    assert_eq!(files.get(unknown).unreadable(), Some(OpenError::NotFound), "another file under that path");
    let found = files.add(key.clone(), &place(std::process::id()));
    assert_eq!(files.get(found).build_id(), build_id(Path::new("/bin/sleep")).as_deref());
    drop((held, files));
    let mut files = Files::default();
    let gone = files.add(key, &place(std::process::id()));
    assert_eq!(files.get(gone).unreadable(), Some(OpenError::NotFound));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_that_was_closed_is_opened_again_with_the_next_mapping() {
    let sleeper = Sleeper::start("closed");
    let (key, place) = sleeper.mapping();
    let mut files = Files::default();
    let id = files.add(key.clone(), &place);
    let sections = |files: &mut Files| files.take_unwind_sections(id).and_then(|sections| sections.eh_frame);
    let first = sections(&mut files).expect("it has rules").bytes;
    files.close(id, false);
    assert!(files.get(id).open_file().is_none() && files.open == 0);
    assert!(files.get(id).elf().is_some(), "its headers are known");
    assert!(sections(&mut files).expect("its path leads to it").bytes == first);
    std::fs::remove_file(&sleeper.program).unwrap();
    assert!(sections(&mut files).is_none(), "nothing leads to it");
    // The process of the mapping is gone.
    assert_eq!(files.add(key.clone(), &FileOrigin::Process { pid: u32::MAX, range: 0..1, parent: 0 }), id);
    assert!(files.get(id).open_file().is_none() && files.get(id).elf().is_some(), "as before");
    assert_eq!(files.add(key, &place), id, "the same as the one that was closed");
    assert!(sections(&mut files).expect("the mapping leads to it").bytes == first);
    assert_eq!(files.open, 1);
}

#[test]
fn a_file_that_is_wanted_for_its_symbols_stays_open() {
    let sleeper = Sleeper::start("wanted");
    let (key, place) = sleeper.mapping();
    let mut files = Files::default();
    let id = files.add(key, &place);
    files.close(id, true);
    std::fs::remove_file(&sleeper.program).unwrap();
    assert_eq!(files.vanished().map(|(id, _)| id).collect::<Vec<_>>(), [id]);
    files.close(id, false);
    assert_eq!(files.vanished().count(), 0);
}
