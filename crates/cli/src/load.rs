//! Opens FILE: a recording or a profile of another tool, recognised by its content.

mod directory;
#[cfg(feature = "server")]
mod payload;
mod perf_data;
#[cfg(feature = "server")]
mod remote;

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Seek};
use std::path::Path;

use anyhow::{Context, Result, bail};
use plumb_formats::kind::{self, FileKind};
use plumb_formats::{foreign, native};
use plumb_profile::Profile;
use plumb_symbolize::Progress;

use crate::args::SymfsArgs;
use crate::terminal::say;

#[cfg(feature = "server")]
pub use payload::{Payload, payload};

/// File read by default.
const DEFAULT: &str = "profile.plumb";

/// The file that a killed recorder leaves behind for that name.
const UNFINISHED: &str = "profile.plumb.part";

/// Supported formats, for error messages.
const NEEDED: &str = "what can be read is a plumb recording, perf.data, pprof, Java Flight Recorder's files, folded stacks, speedscope's \
                      files, the Firefox Profiler's, V8's CPU profiles, trace events, callgrind's output, and what perf script prints";

/// Reads the profile in `path`, `-` for standard input, and resolves its symbols if that was not done yet.
///
/// Damage in the file is reported on standard error and counted in the profile's
/// [`damaged_records`](plumb_profile::Meta::damaged_records).
pub fn load(path: &Path, symfs: &SymfsArgs) -> Result<Profile> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
        return read(Cursor::new(bytes), "standard input", symfs);
    }
    let name = path.display().to_string();
    if name.starts_with("http://") || name.starts_with("https://") {
        return read_remote(&name, symfs);
    }
    if path.is_dir() {
        return load(&directory::header_file(path, &name)?, symfs);
    }
    match File::open(path) {
        Ok(file) if directory::is_header_file(path) => {
            let profile = perf_data::read_in_directory(file, path, &name, symfs.directory())?;
            Ok(prepared(profile, symfs))
        }
        Ok(file) => read(file, &name, symfs),
        Err(error) if error.kind() == ErrorKind::NotFound && path.as_os_str() == DEFAULT => {
            if Path::new(UNFINISHED).exists() {
                bail!("no recording here ({DEFAULT}), but one that was not finished: name it, {UNFINISHED}");
            }
            bail!("no recording here ({DEFAULT}): run `plumb record -- CMD` first, or name a file")
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => bail!(refused(path, &name)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{name}: no such file; to make it: plumb record -o {} -- CMD", shell_words::quote(&name))
        }
        Err(error) => Err(error).context(name),
    }
}

#[cfg(feature = "server")]
fn read_remote(url: &str, symfs: &SymfsArgs) -> Result<Profile> {
    read(Cursor::new(remote::fetch(url)?), url, symfs)
}

#[cfg(not(feature = "server"))]
fn read_remote(url: &str, _symfs: &SymfsArgs) -> Result<Profile> {
    bail!(
        "{url}: this plumb was built without the feature `server`, which reads URLs; download the profile and name the file"
    )
}

/// The error message for a file without read permission. It names the owner, who is often root.
fn refused(path: &Path, name: &str) -> String {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(path).map(|meta| meta.uid()) {
        Ok(0) => format!(
            "cannot read {name}: permission denied (it is root's); try sudo, or sudo chown $USER {name}"
        ),
        Ok(user) => format!("cannot read {name}: permission denied (it is user {user}'s); ask for a copy"),
        Err(_) => format!("cannot read {name}: permission denied (its folder may not be searched)"),
    }
}

/// As [`load`], from bytes; `name` describes their origin in messages.
#[cfg(feature = "server")]
pub fn load_bytes(name: &str, bytes: Vec<u8>, symfs: &SymfsArgs) -> Result<Profile> {
    read(Cursor::new(bytes), name, symfs)
}

fn read<R: Read + Seek>(input: R, name: &str, symfs: &SymfsArgs) -> Result<Profile> {
    Ok(prepared(parsed(input, name, symfs.directory())?, symfs))
}

/// Resolves symbols if that was not done yet, or if the files of the recorded machine are named: these may have names that it lacked. Makes names
/// readable.
fn prepared(mut profile: Profile, symfs: &SymfsArgs) -> Profile {
    profile.symfs = symfs.directory().map(Path::to_owned);
    if !profile.meta.symbolized || profile.symfs.is_some() {
        let debuginfod = plumb_symbolize::names_debuginfod_servers();
        let options = plumb_symbolize::Options { debuginfod, ..Default::default() };
        let mut told = String::new();
        plumb_symbolize::symbolize(&mut profile, &options, &mut |progress| {
            say_download(&progress, &mut told)
        });
    }
    plumb_symbolize::make_readable(&mut profile);
    profile
}

/// Names each file that is being downloaded, once: it may take long.
fn say_download(progress: &Progress, told: &mut String) {
    if let Progress::Download { url, .. } = progress
        && told != url
    {
        say!("downloading {url}");
        told.clone_from(url);
    }
}

/// Reads an unfinished recording, and says so.
fn read_unfinished<R: Read + Seek>(input: R, name: &str) -> Result<Profile> {
    let (mut profile, unfinished) = native::read_unfinished(input).with_context(|| name.to_string())?;
    let seconds = profile.meta.duration_ns as f64 / 1e9;
    let mut text = format!("the recording was not finished: these are its first {seconds:.1} s");
    if unfinished.cut_bytes > 0 {
        text += &format!(", and {} bytes at its end are left out", unfinished.cut_bytes);
    }
    say!("{name}: {text}");
    profile.meta.warnings.push(text);
    // The last frames may have no names yet.
    profile.meta.symbolized = false;
    Ok(profile)
}

/// Parses the input, in any supported format, without resolving symbols.
/// `symfs`: the directory with the files of the recorded machine.
pub(crate) fn parsed<R: Read + Seek>(mut input: R, name: &str, symfs: Option<&Path>) -> Result<Profile> {
    let mut start = Vec::new();
    input.by_ref().take(kind::KIND_BYTES).read_to_end(&mut start).with_context(|| name.to_string())?;
    input.rewind().with_context(|| name.to_string())?;
    match FileKind::of(&start) {
        FileKind::Recording => native::read(input).with_context(|| name.to_string()),
        FileKind::Unfinished => read_unfinished(input, name),
        FileKind::PerfData => perf_data::read(input, name, symfs),
        FileKind::Packed => read_packed(input, name, symfs),
        FileKind::Foreign => read_foreign(input, name),
        FileKind::Other(what) => bail!("{name}: {what}; {NEEDED}"),
    }
}

/// Reads a compressed file of any format.
fn read_packed<R: Read>(mut input: R, name: &str, symfs: Option<&Path>) -> Result<Profile> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).with_context(|| name.to_string())?;
    let unpacked = foreign::unpack(&bytes).with_context(|| name.to_string())?.unwrap_or_default();
    drop(bytes);
    if foreign::compression(&unpacked).is_some() {
        bail!("{name}: compressed twice: unpack it once; {NEEDED}");
    }
    parsed(Cursor::new(unpacked), name, symfs)
}

fn read_foreign<R: Read>(mut input: R, name: &str) -> Result<Profile> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).with_context(|| name.to_string())?;
    match foreign::read(&bytes) {
        Err(foreign::ForeignError::Unknown { looks }) => bail!("{name}: {looks}; {NEEDED}"),
        read => read.with_context(|| name.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, bytes: &[u8]) -> String {
        let path = std::env::temp_dir().join(format!("plumb-load-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let error = load(&path, &SymfsArgs::default()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let message = format!("{error:#}");
        assert!(message.starts_with(&path.display().to_string()), "{message}");
        message
    }

    #[test]
    fn errors_name_the_file_the_place_and_what_is_needed() {
        let text = message("text", b"Dear reader,\n");
        assert!(text.contains("neither folded stacks") && text.contains("what can be read is"), "{text}");
        let folded = message("folded", b"main;work 12\nmain;rest\n");
        assert!(folded.contains("line 2"), "{folded}");
        let mut recording = Cursor::new(Vec::new());
        native::write(&Profile::default(), &mut recording).unwrap();
        let cut = message("cut", &recording.into_inner()[..1000]);
        assert!(cut.contains("offset 1000") && cut.contains("cut off"), "{cut}");
        let header = message("header", b"PERFILE2\x68\0\0\0\0\0\0\0\x90");
        assert!(header.contains("offset 17"), "{header}");
    }

    #[test]
    fn without_a_recording_the_next_step_is_said() {
        let error = load(Path::new(DEFAULT), &SymfsArgs::default()).unwrap_err().to_string();
        assert!(error.contains("plumb record -- CMD"), "{error}");
        let error = format!("{:#}", load(Path::new("no/such/file"), &SymfsArgs::default()).unwrap_err());
        assert!(error.starts_with("no/such/file: no such file"), "{error}");
        assert!(error.ends_with("plumb record -o no/such/file -- CMD"), "{error}");
    }

    #[test]
    fn a_recording_comes_back() {
        let mut profile = Profile::default();
        profile.meta.host = "here".into();
        let mut recording = Cursor::new(Vec::new());
        native::write(&profile, &mut recording).unwrap();
        let back = read(Cursor::new(recording.into_inner()), "made", &SymfsArgs::default()).unwrap();
        assert_eq!(back.meta.host, "here");
        assert!(back.meta.symbolized);
    }
}
