//! Whether Python, PHP, Ruby or Perl is going to run, as far as that can be told before it does: by what a command says, and what a process has mapped.
//!
//! Not here: which versions are known. Where one runs that is not, stacks are walked in the kernel all the same.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use plumb_target::{Launch, program_file};

/// So much is read of a script.
const SCRIPT_BYTES: u64 = 64 << 10;
/// Their functions are read by the kernel's programs alone.
const NAMES: [&[u8]; 4] = [b"python", b"php", b"ruby", PERL];
const PERL: &[u8] = b"perl";

/// Whether a command names one of them: its program, one of its words (`sh -c "python3 x.py"`), or a script that is one of these.
pub(super) fn is_named_by(launch: &Launch) -> bool {
    let words = std::iter::once(&launch.program).chain(&launch.arguments);
    words.clone().any(|word| mentions(word.as_bytes()))
        || in_path(&launch.program).is_some_and(|file| is_script_of_it(&file))
        || launch.arguments.iter().any(|word| is_script_of_it(Path::new(word)))
}

/// Whether a process has one of them mapped.
pub(super) fn is_in(pid: u32) -> bool {
    plumb_process::mappings(pid).is_some_and(|maps| mentions(&maps))
}

fn mentions(text: &[u8]) -> bool {
    let is_named = |name: &[u8], at: usize| {
        let before = &text[..at];
        // Not `properly`.
        let begins = before.ends_with(b"lib") || !before.last().is_some_and(u8::is_ascii_alphabetic);
        text[at..].starts_with(name) && (begins || name != PERL)
    };
    NAMES.iter().any(|name| (0..text.len()).any(|at| is_named(name, at)))
}

/// The file of a program: as it is named, or the first of PATH.
fn in_path(program: &std::ffi::OsStr) -> Option<PathBuf> {
    program_file(program, &std::env::var_os("PATH").unwrap_or_default())
}

/// Whether a file is a script that one of them runs, or that mentions it.
fn is_script_of_it(path: &Path) -> bool {
    // Nothing that could block or never end.
    let Some(file) = path.is_file().then(|| File::open(path).ok()).flatten() else { return false };
    let mut text = Vec::new();
    let is_read = file.take(SCRIPT_BYTES).read_to_end(&mut text).is_ok();
    is_read && !text.starts_with(b"\x7fELF") && !text.contains(&0) && mentions(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_named(words: &[&str]) -> bool {
        let mut words = words.iter().map(Into::into);
        let program = words.next().expect("a command has a program");
        is_named_by(&Launch { program, arguments: words.collect(), environment: Vec::new() })
    }

    #[test]
    fn wrappers_and_scripts_name_what_they_run() {
        let folder = std::env::temp_dir().join(format!("plumb-named-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        let script = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("it can be written");
            path.to_string_lossy().into_owned()
        };
        let tool = script("tool", "#!/usr/bin/env python3\n");
        let run = script("run.sh", "#!/bin/sh\nexec python3 -m thing\n");
        let other = script("other.sh", "#!/bin/sh\n# Ends properly.\nexec make\n");
        assert!(is_named(&["python3.12", "x.py"]) && is_named(&["env", "python3", "x.py"]));
        assert!(is_named(&["sh", "-c", "exec python3 x.py"]) && is_named(&[&tool]));
        assert!(is_named(&["php8.2", "x.php"]) && is_named(&["sh", "-c", "exec php-fpm8.2 -F"]));
        assert!(is_named(&["perl", "x.pl"]) && is_named(&["sh", "-c", "exec /usr/bin/perl -e 1"]));
        assert!(is_named(&["sh", &run]) && is_named(&[&run]));
        assert!(!is_named(&["sh", &other]) && !is_named(&["sh", "-c", "exit"]) && !is_named(&["/bin/true"]));
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
