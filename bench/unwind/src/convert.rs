//! perf.data to a corpus: samples of the process that has most of them, evenly thinned out if there are too many.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use linux_perf_data::linux_perf_event_reader::{EventRecord, SampleRecord};
use linux_perf_data::{PerfFileReader, PerfFileRecord};

use crate::corpus::{self, Corpus, Mapping, Values};
use crate::image;

const PROT_EXEC: u32 = 4;
/// perf's numbers of registers (asm/perf_regs.h) by DWARF number.
const PERF: [u64; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];

/// What is known of a process.
#[derive(Default)]
struct Process {
    mappings: Vec<(Range<u64>, u64, String)>,
    samples: Vec<(Values, Vec<u64>)>,
}

impl Process {
    fn map(&mut self, range: Range<u64>, offset: u64, path: String) {
        let kept = std::mem::take(&mut self.mappings);
        for (old, at, name) in kept {
            if old.end <= range.start || old.start >= range.end {
                self.mappings.push((old, at, name));
                continue;
            }
            if old.start < range.start {
                self.mappings.push((old.start..range.start, at, name.clone()));
            }
            if old.end > range.end {
                self.mappings.push((range.end..old.end, at + (range.end - old.start), name));
            }
        }
        self.mappings.push((range, offset, path));
        self.mappings.sort_by_key(|(range, ..)| range.start);
    }

    fn sample(&mut self, sample: &SampleRecord<'_>) {
        let (Some(registers), Some((stack, _))) = (&sample.user_regs, &sample.user_stack) else { return };
        let mut values = [0; 17];
        for (value, number) in values.iter_mut().zip(PERF) {
            let Some(known) = registers.get(number) else { return };
            *value = known;
        }
        let bytes = stack.as_slice();
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        self.samples.push((values, words));
    }
}

/// Whether a sample is one of `most`, evenly spread over all.
fn is_kept(number: usize, all: usize, most: usize) -> bool {
    let most = most.min(all);
    (number + 1) * most / all != number * most / all
}

/// Makes a corpus of some samples of another.
pub fn thin(corpus: &Corpus, most: usize, output: &Path) -> io::Result<()> {
    let all = corpus.samples.len();
    let samples = corpus.samples.iter().enumerate().filter(|&(number, _)| is_kept(number, all, most));
    let samples: Vec<_> =
        samples.map(|(_, sample)| (sample.registers, corpus.stack(sample).to_vec())).collect();
    corpus::write(output, &corpus.mappings, &samples)
}

/// Converts, at most `most` samples. Returns their number.
pub fn convert(input: &Path, output: &Path, most: usize) -> Result<usize, Box<dyn std::error::Error>> {
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(BufReader::new(File::open(input)?))?;
    let mut processes: HashMap<i32, Process> = HashMap::new();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        match record.parse()? {
            EventRecord::Mmap2(map) if map.protection & PROT_EXEC != 0 => {
                let path = String::from_utf8_lossy(&map.path.as_slice()).into_owned();
                let range = map.address..map.address + map.length;
                processes.entry(map.pid).or_default().map(range, map.page_offset, path);
            }
            // Another program: nothing of the old one is left.
            EventRecord::Comm(comm) if comm.is_execve => {
                processes.insert(comm.pid, Process::default());
            }
            EventRecord::Sample(sample) => {
                if let Some(pid) = sample.pid {
                    processes.entry(pid).or_default().sample(&sample);
                }
            }
            _ => {}
        }
    }
    let mut process =
        processes.into_values().max_by_key(|process| process.samples.len()).ok_or("no samples")?;
    let all = process.samples.len();
    let mut number = 0..all;
    process.samples.retain(|_| number.next().is_some_and(|number| is_kept(number, all, most)));
    let mappings = located(&process, &output.with_extension("vdso"))?;
    corpus::write(output, &mappings, &process.samples)?;
    Ok(process.samples.len())
}

/// The mappings with their biases; the vdso is saved as a file.
fn located(process: &Process, vdso: &Path) -> io::Result<Vec<Mapping>> {
    let mut mappings = Vec::new();
    for (range, offset, path) in &process.mappings {
        let path = if path == "[vdso]" {
            save_vdso(vdso)?;
            vdso.display().to_string()
        } else {
            path.clone()
        };
        let Some(stated) = image::stated(Path::new(&path), *offset) else {
            eprintln!("{path}: left out, not an ELF file");
            continue;
        };
        mappings.push(Mapping { range: range.clone(), bias: range.start.wrapping_sub(stated), path });
    }
    Ok(mappings)
}

/// Saves the vdso of this process: the kernel gives the same one to all.
fn save_vdso(path: &Path) -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split(' ').next()?.split_once('-'));
    let hex = |text| u64::from_str_radix(text, 16).map_err(io::Error::other);
    let Some((start, end)) = range else { return Ok(()) };
    let (start, end) = (hex(start)?, hex(end)?);
    let mut memory = File::open("/proc/self/mem")?;
    memory.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; (end - start) as usize];
    memory.read_exact(&mut bytes)?;
    std::fs::write(path, bytes)
}
