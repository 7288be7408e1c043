//! A corpus: the samples of one process, each with all integer registers and a copy of the stack, and what was mapped.
//!
//! The file is little-endian words of eight bytes, so that programs in C read it as well (`c/corpus.h`):
//! `magic, mappings, samples`; a mapping is `start, end, bias, bytes of the path` and the path, padded with zeros to at
//! least one; a sample is 17 registers by DWARF number (16 is `rip`), the number of words of the stack, and these words
//! from the stack pointer upwards. A list of steps, beside it, is `magic, steps`; a step is the number of a sample,
//! whether `rip` is a return address, a mask of the registers that are known, and the 17 registers.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"plumbuw1");

/// Registers by DWARF number.
pub type Values = [u64; 17];

/// A file's code in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<u64>,
    /// Actual minus stated address.
    pub bias: u64,
    pub path: String,
}

/// One moment of the process.
#[derive(Clone, Debug)]
pub struct Sample {
    pub registers: Values,
    pub stack: Range<usize>,
}

/// A frame whose address was met for the first time.
#[derive(Clone, Debug)]
pub struct Step {
    pub sample: usize,
    pub is_return: bool,
    /// Which registers are known.
    pub known: u64,
    pub registers: Values,
}

/// All samples and mappings.
pub struct Corpus {
    words: Vec<u64>,
    /// In the order of their addresses, without overlaps.
    pub mappings: Vec<Mapping>,
    pub samples: Vec<Sample>,
}

fn bad(what: &str) -> io::Error {
    io::Error::other(format!("{what}; make it again with bench/unwind/run.py --record"))
}

fn read_words(path: &Path) -> io::Result<Vec<u64>> {
    let mut file = File::open(path)?;
    let mut words = vec![0u64; file.metadata()?.len() as usize / 8];
    file.read_exact(bytemuck::cast_slice_mut(&mut words))?;
    if words.first() != Some(&MAGIC) {
        return Err(bad("not a corpus"));
    }
    Ok(words)
}

/// Takes words off the front.
struct Cursor<'a>(&'a [u64], usize);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u64]> {
        let taken = self.0.get(self.1..self.1 + count).ok_or_else(|| bad("the corpus is cut off"))?;
        self.1 += count;
        Ok(taken)
    }

    fn word(&mut self) -> io::Result<u64> {
        Ok(self.take(1)?[0])
    }

    fn values(&mut self) -> io::Result<Values> {
        Ok(self.take(17)?.try_into().expect("17 were taken"))
    }
}

impl Corpus {
    /// Reads a file, at most so many samples of it.
    pub fn read(path: &Path, most: usize) -> io::Result<Corpus> {
        let words = read_words(path)?;
        let mut cursor = Cursor(&words, 1);
        let (mappings, samples) = (cursor.word()?, cursor.word()?);
        let mut corpus = Corpus { words: Vec::new(), mappings: Vec::new(), samples: Vec::new() };
        for _ in 0..mappings {
            let (start, end, bias, length) = (cursor.word()?, cursor.word()?, cursor.word()?, cursor.word()?);
            let path: &[u8] = bytemuck::cast_slice(cursor.take(length as usize / 8)?);
            let path = String::from_utf8_lossy(path).trim_end_matches('\0').to_owned();
            corpus.mappings.push(Mapping { range: start..end, bias, path });
        }
        for _ in 0..(samples as usize).min(most) {
            let registers = cursor.values()?;
            let length = cursor.word()? as usize;
            let stack = cursor.1..cursor.1 + length;
            cursor.take(length)?;
            corpus.samples.push(Sample { registers, stack });
        }
        corpus.words = words;
        Ok(corpus)
    }

    /// The words from a sample's stack pointer upwards.
    pub fn stack(&self, sample: &Sample) -> &[u64] {
        &self.words[sample.stack.clone()]
    }
}

/// Writes a corpus.
pub fn write(path: &Path, mappings: &[Mapping], samples: &[(Values, Vec<u64>)]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut put = |words: &[u64]| out.write_all(bytemuck::cast_slice(words));
    put(&[MAGIC, mappings.len() as u64, samples.len() as u64])?;
    for mapping in mappings {
        let mut text = mapping.path.clone().into_bytes();
        text.resize((text.len() + 8) & !7, 0);
        put(&[mapping.range.start, mapping.range.end, mapping.bias, text.len() as u64])?;
        for word in text.as_chunks::<8>().0 {
            put(&[u64::from_le_bytes(*word)])?;
        }
    }
    for (registers, stack) in samples {
        put(registers)?;
        put(&[stack.len() as u64])?;
        put(stack)?;
    }
    out.flush()
}

/// Writes a list of steps.
pub fn write_steps(path: &Path, steps: &[Step]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut put = |words: &[u64]| out.write_all(bytemuck::cast_slice(words));
    put(&[MAGIC, steps.len() as u64])?;
    for step in steps {
        put(&[step.sample as u64, step.is_return.into(), step.known])?;
        put(&step.registers)?;
    }
    out.flush()
}

/// Reads a list of steps.
pub fn read_steps(path: &Path) -> io::Result<Vec<Step>> {
    let words = read_words(path)?;
    let mut cursor = Cursor(&words, 1);
    let count = cursor.word()?;
    (0..count)
        .map(|_| {
            let (sample, is_return, known) = (cursor.word()? as usize, cursor.word()? != 0, cursor.word()?);
            Ok(Step { sample, is_return, known, registers: cursor.values()? })
        })
        .collect()
}
