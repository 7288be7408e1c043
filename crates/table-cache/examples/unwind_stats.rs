//! Prints the size of the unwind tables of ELF files: `unwind_stats [--keep] [--json] FILE...`.
//!
//! `--keep` saves the tables in the user's cache by build ID, as recordings do. `bench/unwind/tables.py` measures the
//! cost of building them.
//!
//! Elsewhere: building tables (`plumb_unwind`) and caching them (`plumb_table_cache`).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use plumb_table_cache::{Description, NoTable, Size, Source, TableCache};
use serde::Serialize;

fn main() -> io::Result<ExitCode> {
    let (options, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    if files.is_empty() || options.iter().any(|option| !matches!(option.as_str(), "--keep" | "--json")) {
        writeln!(io::stderr(), "usage: unwind_stats [--keep] [--json] FILE...")?;
        return Ok(ExitCode::FAILURE);
    }
    let kept = has("--keep").then(TableCache::open);
    let mut described = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for file in files.iter().map(PathBuf::from) {
        match describe(&file, kept.as_ref()) {
            Ok(one) => described.push(one),
            Err(error) => {
                writeln!(io::stderr(), "{}: {error}", file.display())?;
                code = ExitCode::FAILURE;
            }
        }
    }
    let mut out = io::stdout().lock();
    match has("--json") {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&described)?)?,
        false => text(&described, &mut out)?,
    }
    Ok(code)
}

/// A file and its tables, for output.
#[derive(Serialize)]
struct Described {
    file: String,
    /// Size of `.eh_frame` in bytes.
    frame_bytes: usize,
    functions: usize,
    rows: usize,
    rules: usize,
    odd_rows: BTreeMap<&'static str, usize>,
    /// Table built from call-frame information alone.
    by_length: Table,
    /// Table built with the code.
    of_calls: Table,
    /// Whether the table was saved in the cache.
    kept: bool,
}

#[derive(Serialize)]
struct Table {
    rows: usize,
    bytes: usize,
    /// Rows as a share of all rows.
    share: f64,
    bytes_per_full_row: f64,
    build_ms: f64,
}

fn describe(file: &Path, kept: Option<&TableCache>) -> Result<Described, NoTable> {
    let source = Source::open(file)?;
    let described = source.describe()?;
    let keep = |kept: &TableCache| -> Result<bool, NoTable> {
        let Some(build_id) = source.build_id() else { return Ok(false) };
        kept.put(build_id, source.of_calls()?);
        Ok(kept.get(build_id).is_some())
    };
    let kept = kept.map_or(Ok(false), keep)?;
    Ok(Described::new(file.display().to_string(), described, kept))
}

impl Described {
    fn new(file: String, of: Description, kept: bool) -> Self {
        let table = |size: Size| Table {
            rows: size.rows,
            bytes: size.bytes,
            share: per(size.rows, of.rows),
            bytes_per_full_row: per(size.bytes, of.rows),
            build_ms: milliseconds(size.time),
        };
        Self {
            file,
            frame_bytes: of.frame_bytes,
            functions: of.functions,
            rows: of.rows,
            rules: of.rules,
            by_length: table(of.by_length),
            of_calls: table(of.of_calls),
            odd_rows: of.odd,
            kept,
        }
    }
}

fn per(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 100.0
}

fn text(described: &[Described], out: &mut dyn Write) -> io::Result<()> {
    for of in described {
        writeln!(out, "{}", of.file)?;
        writeln!(
            out,
            "  call-frame information  {} bytes, {} functions, {} rows, {} rules",
            of.frame_bytes, of.functions, of.rows, of.rules
        )?;
        for (name, table) in
            [("table without the code", &of.by_length), ("table with the code", &of.of_calls)]
        {
            writeln!(
                out,
                "  {name:<22}  {} bytes, {} rows ({:.1}%), {:.2} bytes per full row, made in {:.1} ms",
                table.bytes,
                table.rows,
                100.0 * table.share,
                table.bytes_per_full_row,
                table.build_ms
            )?;
        }
        for (kind, rows) in &of.odd_rows {
            writeln!(out, "  {:<22}  {rows} rows: {kind}", "said by no rule")?;
        }
        if of.kept {
            writeln!(out, "  kept")?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_shown_as_shares_of_all_rows() {
        let size = |rows, bytes| Size { rows, bytes, time: Duration::from_micros(1234) };
        let of = Description {
            frame_bytes: 5000,
            functions: 50,
            rows: 1000,
            rules: 7,
            odd: BTreeMap::from([("signal frame", 2)]),
            by_length: size(200, 900),
            of_calls: size(80, 400),
        };
        let mut bytes = Vec::new();
        let described = [Described::new("libx.so".into(), of, true)];
        text(&described, &mut bytes).expect("memory takes everything");
        assert_eq!(
            String::from_utf8(bytes).expect("it is text"),
            "libx.so\n  call-frame information  5000 bytes, 50 functions, 1000 rows, 7 rules\n  \
             table without the code  900 bytes, 200 rows (20.0%), 0.90 bytes per full row, made in 1.2 ms\n  \
             table with the code     400 bytes, 80 rows (8.0%), 0.40 bytes per full row, made in 1.2 ms\n  \
             said by no rule         2 rows: signal frame\n  kept\n"
        );
    }

    #[test]
    fn what_is_no_program_is_said_to_be_none() {
        let said = |path| describe(Path::new(path), None).err().map(|error| error.to_string());
        assert_eq!(said("/nonexistent").as_deref(), Some("No such file or directory (os error 2)"));
        assert_eq!(said("/etc/passwd").as_deref(), Some("not an ELF file"));
    }
}
