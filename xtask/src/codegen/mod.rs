//! What is made of the Rust source of what programs in the kernel share with the recorder: C headers, and the reader of messages. And what tests of
//! other crates write, as they alone know the types: the page of all rules (`analyze`), and the web page's types (`documents`).
//!
//! `codegen` writes it, `codegen --check` says whether it is what the source gives. What tests write, the same tests compare.

mod header;
mod model;
mod reader;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use model::Model;

/// Packages with a test that writes a file where the variable `PLUMB_WRITE` is set, and compares it otherwise; and the test.
const WRITERS: [(&str, &str); 2] =
    [("plumb-analyze", "the_page_of_rules"), ("plumb-documents", "page_types")];
/// The file of an interpreter's folder with the numbers that its program in the kernel shares.
const NUMBERS: &str = "kernel.rs";

/// Where sources and what is made of them are.
const CRATE: &str = "crates/capture-bpf";

/// What is made of some sources.
struct Made {
    /// The sources, in the order in which they use each other.
    sources: &'static [&'static str],
    header: &'static str,
    /// The reader of their messages, if they have any.
    reader: Option<&'static str>,
}

const ALL: [Made; 3] = [
    Made {
        sources: &["src/wire/walk.rs", "src/wire/messages.rs", "src/wire/events.rs", "src/wire/sums.rs"],
        header: "bpf/wire.h",
        reader: Some("src/wire/received.rs"),
    },
    Made { sources: &["src/calls/wire.rs"], header: "bpf/calls.h", reader: None },
    Made { sources: &["src/callsums/wire.rs"], header: "bpf/callsums.h", reader: None },
];

/// Writes all, or compares.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let folder = root.join(CRATE);
    for Made { sources, header, reader } in ALL {
        let (mut model, mut items) = (Model::default(), Vec::new());
        for source in sources {
            let text = std::fs::read_to_string(folder.join(source)).context(*source)?;
            items.extend(model.read(&text).context(*source)?);
        }
        let from = match sources {
            [one] => (*one).to_owned(),
            _ => "src/wire/".into(),
        };
        let guard = header.trim_start_matches("bpf/").trim_end_matches(".h").to_uppercase();
        put(&folder, header, &header::write(&guard, &from, &items), check)?;
        if let Some(reader) = reader {
            put(&folder, reader, &formatted(root, &reader::write(&from, &items)?)?, check)?;
        }
    }
    put(&folder, "bpf/interpreters/all.h", &interpreters(root)?, check)?;
    if check {
        Ok(())
    } else {
        WRITERS.iter().try_for_each(|(package, test)| write_by_test(root, package, test))
    }
}

/// The header of all interpreters: the numbers of each, and their list.
fn interpreters(root: &Path) -> Result<String> {
    let source = Path::new("crates/interpreters/src");
    let mut names: Vec<String> = Vec::new();
    for folder in std::fs::read_dir(root.join(source))? {
        let folder = folder?;
        if folder.path().join(NUMBERS).exists() {
            names.push(folder.file_name().to_string_lossy().into());
        }
    }
    names.sort();
    let mut languages = Vec::new();
    for name in names {
        let path = source.join(&name).join(NUMBERS);
        let text = std::fs::read_to_string(root.join(&path))?;
        let items = Model::default().read(&text).with_context(|| path.display().to_string())?;
        languages.push((name, items));
    }
    header::write_interpreters(&languages)
}

/// Has a test write its file.
fn write_by_test(root: &Path, package: &str, test: &str) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    // Together with the command its dependencies have the features of other builds, and aren't built again.
    command.args(["test", "--quiet", "-p", "plumb", "-p", package, "--lib", test]).current_dir(root);
    command.env("PLUMB_WRITE", "1");
    let output = command.output().context("cargo test")?;
    ensure!(
        output.status.success(),
        "{test} of {package}: {}",
        String::from_utf8_lossy(&output.stdout).trim()
    );
    Ok(())
}

fn put(folder: &Path, name: &str, text: &str, check: bool) -> Result<()> {
    let path = folder.join(name);
    if !check {
        return std::fs::write(path, text).context(name.to_owned());
    }
    if std::fs::read_to_string(&path).context(name.to_owned())? != text {
        bail!("{} is not what its source gives: cargo run -p xtask -- codegen", path.display());
    }
    Ok(())
}

/// Rust source as `cargo fmt` has it.
fn formatted(root: &Path, source: &str) -> Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("rustfmt: is it installed?")?;
    rustfmt.stdin.take().context("rustfmt")?.write_all(source.as_bytes()).context("rustfmt")?;
    let output = rustfmt.wait_with_output().context("rustfmt")?;
    ensure!(output.status.success(), "rustfmt refuses what was made:\n{source}");
    Ok(String::from_utf8(output.stdout)?)
}
