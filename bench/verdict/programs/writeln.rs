//! Writes each line straight to a file, in several calls of the kernel; the fix is a BufWriter.

use std::fs::File;
use std::io::{self, Write};

#[inline(never)]
fn export(to: &mut impl Write, rows: u64) -> io::Result<()> {
    for row in 0..rows {
        writeln!(to, "{row};{}", row * 7)?; // SLOW
    }
    to.flush()
}

fn main() -> io::Result<()> {
    let file = File::create("rows.txt")?;
    #[cfg(after)]
    let mut file = io::BufWriter::new(file);
    #[cfg(not(after))]
    let mut file = file;
    export(&mut file, 350_000)?;
    eprintln!("done");
    Ok(())
}
