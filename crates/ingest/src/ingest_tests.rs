//! Hand-made records, in orders and of kinds that are rare in real recordings.

use linux_perf_event_reader::{Endianness, RecordIdParseInfo, RecordParseInfo, SampleFormat};
use plumb_capture_api::FrameWord;
use plumb_fixtures::{Requirement, skip};
use plumb_profile::{FrameKind, Id, Past, Truncation};

use super::*;

const KERNEL_IP: u64 = 0xffff_ffff_8100_1000;
/// The frames of a sample in the kernel.
const IN_KERNEL_FRAMES: [FrameWord; 1] = [FrameWord::new(u64::MAX - 0x10000)];
const IN_KERNEL: u16 = 1;
const IN_USER: u16 = 2;
pub(super) const EXEC: u16 = 1 << 13;

/// The fields that the recorder asks for: program counter, task, time, CPU, period, callchain, registers
/// (only stack pointer and program counter), stack.
fn info() -> RecordParseInfo {
    let bits = perf::PERF_SAMPLE_IP
        | perf::PERF_SAMPLE_TID
        | perf::PERF_SAMPLE_TIME
        | perf::PERF_SAMPLE_CPU
        | perf::PERF_SAMPLE_PERIOD
        | perf::PERF_SAMPLE_CALLCHAIN
        | perf::PERF_SAMPLE_REGS_USER
        | perf::PERF_SAMPLE_STACK_USER;
    let ids = RecordIdParseInfo {
        nonsample_record_id_offset_from_end: None,
        sample_record_id_offset_from_start: None,
    };
    RecordParseInfo {
        endian: Endianness::LittleEndian,
        sample_format: SampleFormat::from_bits_retain(bits),
        branch_sample_format: linux_perf_event_reader::BranchSampleFormat::empty(),
        read_format: linux_perf_event_reader::ReadFormat::empty(),
        common_data_offset_from_end: Some(24),
        sample_regs_user: 1 << 7 | 1 << 8,
        user_regs_count: 2,
        sample_regs_intr: 0,
        intr_regs_count: 0,
        id_parse_info: ids,
        nonsample_record_time_offset_from_end: Some(16),
        sample_record_time_offset_from_start: Some(16),
    }
}

#[derive(Clone)]
pub(super) struct Made {
    kind: RecordType,
    pub(super) misc: u16,
    bytes: Vec<u8>,
}

impl Made {
    pub(super) fn feed_to(&self, ingest: &mut Ingest, event: EventId) {
        let data = RawData::Single(&self.bytes);
        ingest.record(event, &RawEventRecord::new(self.kind, self.misc, data, info()));
    }
}

/// Little-endian fields, one after the other.
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn new() -> Self {
        Fields(Vec::new())
    }
    pub(super) fn u32s(mut self, values: &[u32]) -> Self {
        values.iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }
    pub(super) fn u64s(mut self, values: &[u64]) -> Self {
        values.iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }
    pub(super) fn text(mut self, text: &str) -> Self {
        self.0.extend(text.bytes());
        self.0.resize((self.0.len() + 1).next_multiple_of(8), 0);
        self
    }
    /// Appends task, time and CPU, with which all records except samples end.
    pub(super) fn record(self, kind: RecordType, misc: u16, cpu: u32) -> Made {
        let bytes = self.u32s(&[0, 0]).u64s(&[0]).u32s(&[cpu, 0]).0;
        Made { kind, misc, bytes }
    }
}

pub(super) fn comm(pid: u32, name: &str, misc: u16) -> Made {
    Fields::new().u32s(&[pid, pid]).text(name).record(RecordType::COMM, misc, 0)
}
pub(super) fn fork(parent: u32, pid: u32) -> Made {
    Fields::new().u32s(&[pid, parent, pid, parent]).u64s(&[0]).record(RecordType::FORK, 0, 0)
}
pub(super) fn exit(pid: u32, cpu: u32) -> Made {
    Fields::new().u32s(&[pid, 1, pid, 1]).u64s(&[0]).record(RecordType::EXIT, 0, cpu)
}
pub(super) fn mmap(pid: u32, start: u64, path: &str) -> Made {
    let fields = Fields::new().u32s(&[pid, pid]).u64s(&[start, 0x1000, 0]).u32s(&[0, 0]).u64s(&[0, 0]);
    fields.u32s(&[5, 2]).text(path).record(RecordType::MMAP2, IN_USER, 0)
}

/// A sample of a task in the kernel: ABI of its user registers, program counter and the words on its stack.
pub(super) struct Kernel<'a> {
    pub(super) pid: u32,
    pub(super) abi: u64,
    pub(super) ip: u64,
    pub(super) stack: Option<&'a [u64]>,
}

pub(super) fn sample(of: &Kernel<'_>) -> Made {
    let fields = Fields::new().u64s(&[KERNEL_IP]).u32s(&[of.pid, of.pid]).u64s(&[1000]).u32s(&[3, 0]);
    let mut fields = fields.u64s(&[1, 2, perf::PERF_CONTEXT_KERNEL, KERNEL_IP, of.abi]);
    if of.abi != 0 {
        fields = fields.u64s(&[0x7ffc_0000, of.ip]);
    }
    let fields = match of.stack {
        None => fields.u64s(&[0]),
        Some(words) => {
            let mut copy = words.to_vec();
            copy.resize(16, 0);
            fields.u64s(&[128]).u64s(&copy).u64s(&[8 * words.len() as u64])
        }
    };
    Made { kind: RecordType::SAMPLE, misc: IN_KERNEL, bytes: fields.0 }
}

/// Sets the time of a record that is not a sample.
pub(super) fn at(time_ns: u64, mut made: Made) -> Made {
    let end = made.bytes.len();
    made.bytes[end - 16..end - 8].copy_from_slice(&time_ns.to_le_bytes());
    made
}

/// Sets the time of a sample.
fn timed(time_ns: u64, mut made: Made) -> Made {
    made.bytes[16..24].copy_from_slice(&time_ns.to_le_bytes());
    made
}

pub(super) fn feed(ingest: &mut Ingest, records: &[Made]) {
    let event = ingest.add_event("cpu-clock", "ns");
    records.iter().for_each(|made| made.feed_to(ingest, event));
}

pub(super) fn ingested(filter: Filter, records: &[Made]) -> (Profile, Statistics) {
    let mut ingest = Ingest::new(Source::File, filter);
    feed(&mut ingest, records);
    ingest.finish()
}

fn kinds(profile: &Profile, index: usize) -> Vec<FrameKind> {
    let sample = profile.samples.get(index).unwrap();
    profile.frames_of(sample.stack).map(|frame| profile.frames[frame].kind).collect()
}

fn comm_of(profile: &Profile, index: usize) -> &str {
    let thread = profile.samples.get(index).unwrap().thread;
    profile.strings.get(profile.threads[thread].comm)
}

#[test]
fn task_in_the_middle_of_an_exec_has_kernel_frames_only() {
    let unreadable = sample(&Kernel { pid: 7, abi: 2, ip: 0x40_0010, stack: Some(&[]) });
    let (profile, statistics) = ingested(
        Filter::All,
        &[
            comm(7, "sh", 0),
            mmap(7, 0x40_0000, "/no/such/shell"),
            unreadable.clone(),
            comm(7, "program", EXEC),
            unreadable.clone(),
            mmap(7, 0x80_0000, "/no/such/program"),
            unreadable,
        ],
    );
    for index in 0..3 {
        assert_eq!(kinds(&profile, index), [FrameKind::Kernel], "sample {index}");
    }
    assert_eq!((statistics.complete, statistics.cut.len()), (3, 0));
    assert_eq!(["sh", "program"], [comm_of(&profile, 0), comm_of(&profile, 1)]);
    let process = |index: usize| profile.threads[profile.samples.get(index).unwrap().thread].process;
    assert_ne!(process(0), process(1), "an exec begins a new process row");
    assert_eq!(profile.strings.get(profile.processes[process(1)].exe), "/no/such/program");
}

#[test]
fn unreadable_stack_without_an_exec_stays_cut() {
    let readable = sample(&Kernel { pid: 7, abi: 2, ip: 0x40_0010, stack: Some(&[1, 2]) });
    let unreadable = sample(&Kernel { pid: 7, abi: 2, ip: 0x40_0010, stack: Some(&[]) });
    let mapped = mmap(7, 0x40_0000, "/no/such/shell");
    let (profile, statistics) =
        ingested(Filter::All, &[mapped, unreadable, readable, comm(7, "program", EXEC)]);
    assert_eq!(
        kinds(&profile, 0),
        [FrameKind::Kernel, FrameKind::User, FrameKind::Truncation(Truncation::FileUnreadable)]
    );
    assert_eq!(statistics.complete, 0);
}

#[test]
fn forked_child_has_its_parents_mappings_and_strangers_are_filtered() {
    let of = |pid| sample(&Kernel { pid, abi: 2, ip: 0x40_0010, stack: Some(&[1]) });
    let records =
        [comm(7, "sh", EXEC), mmap(7, 0x40_0000, "/no/such/shell"), fork(7, 8), fork(1, 9), of(8), of(9)];
    let (profile, statistics) = ingested(Filter::Tree(vec![7]), &records);
    assert_eq!((statistics.samples, statistics.filtered), (1, 1));
    let sample = profile.samples.get(0).unwrap();
    let thread = &profile.threads[sample.thread];
    assert_eq!((comm_of(&profile, 0), profile.processes[thread.process].ppid), ("sh", 7));
    let user =
        profile.frames_of(sample.stack).map(|id| profile.frames[id]).find(|f| f.kind == FrameKind::User);
    let dso = &profile.dsos[user.unwrap().dso.unwrap()];
    assert_eq!(profile.strings.get(dso.path), "/no/such/shell");
    assert_eq!(profile.mappings.len(), 1);
}

#[test]
fn what_the_kernel_does_for_a_dead_task_is_still_its_work() {
    let nobody = sample(&Kernel { pid: u32::MAX, abi: 0, ip: 0, stack: None });
    let (profile, _) = ingested(Filter::Tree(vec![7]), &[comm(7, "gone", 0), exit(7, 3), exit(8, 1), nobody]);
    assert_eq!(comm_of(&profile, 0), "gone");
    assert_eq!(kinds(&profile, 0), [FrameKind::Kernel]);
}

#[test]
fn tasks_without_user_memory_are_complete() {
    let thread = sample(&Kernel { pid: 2, abi: 0, ip: 0, stack: None });
    let exiting = sample(&Kernel { pid: 7, abi: 2, ip: 0x40_0010, stack: None });
    let (profile, statistics) =
        ingested(Filter::All, &[comm(2, "kthreadd", 0), comm(7, "sh", EXEC), thread, exiting]);
    assert_eq!((statistics.complete, statistics.samples), (2, 2));
    assert_eq!(kinds(&profile, 0), [FrameKind::Kernel]);
}

/// File offset of a program's entry point: that function has no caller, so a stack there is complete.
fn entry_offset(path: &str) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    let entry = u64::from_le_bytes(*bytes.get(24..)?.first_chunk()?);
    let elf = plumb_process::Elf::read(std::io::Cursor::new(&bytes)).ok()?;
    let (at, offset, _) = elf.code().find(|&(at, _, size)| (at..at + size).contains(&entry))?;
    Some(entry - at + offset.0)
}

#[test]
fn frames_kept_from_the_last_sample_are_those_of_todays_mappings() {
    const IP: u64 = 0x7000_0100;
    let (first, second) = ("/bin/ls", "/bin/cat");
    let mapped = |path: &str| {
        let offset = entry_offset(path)? - 0x100;
        let fields = Fields::new().u32s(&[7, 7]).u64s(&[IP - 0x100, 0x1000, offset]);
        let fields = fields.u32s(&[0, 0]).u64s(&[0, 0]).u32s(&[5, 2]).text(path);
        Some(fields.record(RecordType::MMAP2, IN_USER, 0))
    };
    let (Some(before), Some(after)) = (mapped(first), mapped(second)) else {
        skip(Requirement::Files, format_args!("{first} or {second} is no program here"));
        return;
    };
    let of = || sample(&Kernel { pid: 7, abi: 2, ip: IP, stack: Some(&[1]) });
    let mut ingest = Ingest::new(Source::File, Filter::All);
    feed(&mut ingest, &[comm(7, "program", EXEC), before, of(), of()]);
    assert_eq!(ingest.stacks.last, (1, 1), "made once");
    // The library was replaced by another one; registers and stack are the same.
    feed(&mut ingest, &[after, of()]);
    assert_eq!(ingest.stacks.last, (0, 2));
    feed(&mut ingest, &[of()]);
    assert_eq!(ingest.stacks.last.0, 1);
    let (profile, statistics) = ingest.finish();
    assert_eq!((statistics.complete, statistics.samples), (4, 4));
    let path = |index: usize| {
        let stack = profile.samples.get(index).unwrap().stack;
        let user = profile.frames_of(stack).map(|id| profile.frames[id]).find(|f| f.kind == FrameKind::User);
        profile.strings.get(profile.dsos[user.unwrap().dso.unwrap()].path)
    };
    assert_eq!([0, 1, 2, 3].map(path), [first, first, second, second]);
}

#[test]
fn process_of_32_bits_is_not_unwound() {
    let of = sample(&Kernel { pid: 7, abi: 1, ip: 0x40_0010, stack: Some(&[1]) });
    let (profile, _) = ingested(Filter::All, &[mmap(7, 0x40_0000, "/no/such/shell"), of]);
    assert_eq!(
        kinds(&profile, 0),
        [FrameKind::Kernel, FrameKind::User, FrameKind::Truncation(Truncation::OtherArchitecture)]
    );
}

#[test]
fn new_name_begins_a_new_thread_row() {
    let of = sample(&Kernel { pid: 2, abi: 0, ip: 0, stack: None });
    let (profile, _) = ingested(
        Filter::All,
        &[comm(2, "one", 0), of.clone(), comm(2, "two", 0), of.clone(), comm(2, "two", 0), of],
    );
    assert_eq!(["one", "two", "two"], [0, 1, 2].map(|index| comm_of(&profile, index)));
    assert_eq!((profile.threads.len(), profile.processes.len()), (2, 1));
}

#[test]
fn many_short_lives_leave_little_behind() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    feed(&mut ingest, &[comm(1, "sh", EXEC), mmap(1, 0x40_0000, "/no/such/shell")]);
    for pid in 2..2000 {
        let life = [
            fork(1, pid),
            comm(pid, "dirname", EXEC),
            mmap(pid, 0x50_0000, "/no/such/dirname"),
            exit(pid, 0),
        ];
        feed(&mut ingest, &life);
    }
    assert!(ingest.processes.tasks.processes.len() < 100 && ingest.processes.tasks.threads.len() < 100);
    assert!(ingest.processes.spaces.len() < 100);
}

#[test]
fn processes_that_have_ended_leave_a_row_and_nothing_else_with_each_part() {
    const PART: u32 = 10_000;
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let shell = [comm(1, "sh", EXEC), mmap(1, 0x40_0000, "/no/such/shell")];
    feed(&mut ingest, &shell);
    let mut most = [0; 5];
    for pid in 2..100_000 {
        let time = u64::from(pid) * 1_000_000;
        let hit = sample(&Kernel { pid, abi: 2, ip: 0x50_0010, stack: Some(&[]) });
        let life = [
            at(time, fork(1, pid)),
            at(time + 10, comm(pid, "dirname", EXEC)),
            at(time + 20, mmap(pid, 0x50_0000, "/no/such/dirname")),
            timed(time + 30, hit),
            at(time + 40, exit(pid, 0)),
        ];
        life.iter().for_each(|made| made.feed_to(&mut ingest, EventId::from_index(0)));
        if pid % PART == 0 {
            ingest.end_part();
            let profile = ingest.profile_mut();
            (profile.samples, profile.stacks) = (Default::default(), Default::default());
            assert!(profile.mappings.len() as u32 > PART / 2 && profile.lives.rows().len() as u32 > PART);
            ingest.forget_ended();
            let profile = ingest.profile();
            let now = [
                profile.lives.rows().len(),
                profile.mappings.len(),
                ingest.processes.spaces.noted(),
                ingest.processes.spaces.len(),
                profile.frames.len() + profile.strings.len() + profile.dsos.len(),
            ];
            (0..now.len()).for_each(|index| most[index] = most[index].max(now[index]));
        }
    }
    assert!(ingest.profile().lives.len() >= 2 * (100_000 - 2), "each was there");
    // Lifetimes of the last two seconds stay, as the kernel may still report on them: that is 2000 processes.
    assert!(most[0] < 5000, "{most:?}");
    assert!(most[1..].iter().all(|&rows| rows < 500), "{most:?}");
}

/// The content of a sample: process and program, the frames with their files, and the weight.
type Said = (u32, String, Vec<(u64, Option<String>)>, u64);

fn said(profile: &Profile) -> Vec<Said> {
    let text = |id| profile.strings.get(id).to_owned();
    let say = |sample: plumb_profile::Sample| {
        let process = &profile.processes[profile.threads[sample.thread].process];
        let frames = profile.frames_of(sample.stack).map(|frame| profile.frames[frame]);
        let frames = frames.map(|frame| (frame.address.0, frame.dso.map(|dso| text(profile.dsos[dso].path))));
        (process.pid, text(process.exe), frames.collect(), sample.weight)
    };
    profile.samples.iter().map(say).collect()
}

#[test]
fn what_is_taken_out_is_all_there_was_and_the_rest_goes_on_without_it() {
    let hit = |pid, ip| sample(&Kernel { pid, abi: 2, ip, stack: Some(&[1, 2]) });
    let first = [comm(7, "sh", 0), mmap(7, 0x40_0000, "/no/such/shell"), hit(7, 0x40_0010)];
    let other = [comm(8, "x", 0), mmap(8, 0x50_0000, "/no/such/x"), hit(8, 0x50_0010)];
    let last = [hit(7, 0x40_0010), hit(7, 0x40_0020)];
    let mut whole = Ingest::new(Source::File, Filter::All);
    let mut parts = Ingest::new(Source::File, Filter::All);
    let event = whole.add_event("cpu-clock", "ns");
    parts.add_event("cpu-clock", "ns");
    let mut taken = Vec::new();
    for records in [&other[..], &first, &last] {
        records.iter().for_each(|made| made.feed_to(&mut whole, event));
        records.iter().for_each(|made| made.feed_to(&mut parts, event));
        let part = parts.take([]);
        assert!(parts.profile().samples.is_empty() && parts.profile().frames.is_empty());
        assert_eq!(part.profile.events.len(), 1);
        assert!(part.profile.processes.iter().all(|(id, _)| part.running.contains(&id)));
        taken.extend(said(&part.profile));
    }
    assert_eq!(taken, said(whole.profile()));
    assert_eq!(taken.len(), 4);
    assert_eq!(parts.statistics().samples, whole.statistics().samples, "figures go on");
}

#[test]
fn what_is_put_back_goes_on_in_its_rows() {
    let hit = sample(&Kernel { pid: 7, abi: 2, ip: 0x40_0010, stack: Some(&[1, 2]) });
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let begin = [comm(7, "sh", 0), mmap(7, 0x40_0000, "/no/such/shell"), hit.clone()];
    begin.iter().for_each(|made| made.feed_to(&mut ingest, event));
    let rows = |profile: &Profile| {
        [
            profile.strings.len(),
            profile.dsos.len(),
            profile.processes.len(),
            profile.threads.len(),
            profile.frames.len(),
            profile.stacks.len(),
        ]
    };
    let past = ingest.take([]).profile.compacted();
    let before = rows(&past);
    ingest.put_back(past);
    for _ in 0..10 {
        hit.feed_to(&mut ingest, event);
    }
    assert_eq!(rows(ingest.profile()), before);
    assert!(before[4] > 1, "frames of user code are there");
    let all = said(ingest.profile());
    assert!(all.len() == 11 && all.iter().all(|one| *one == all[0]), "{all:?}");
}

#[test]
fn memory_stays_the_same_over_many_programs_if_their_past_is_folded() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let (mut most, mut samples) = (0, 0);
    for pid in 2..20_000_u32 {
        let start = 0x50_0000 + u64::from(pid % 100) * 0x1000;
        let hit = sample(&Kernel { pid, abi: 2, ip: start + u64::from(pid % 0xfff), stack: Some(&[]) });
        // Each exec starts another program.
        let life = [
            fork(1, pid),
            comm(pid, &format!("p{pid}"), EXEC),
            mmap(pid, start, &format!("/no/such/{pid}")),
            hit,
            exit(pid, 0),
        ];
        life.iter().for_each(|made| made.feed_to(&mut ingest, event));
        samples += 1;
        if pid % 500 == 0 {
            let TakenProfile { mut profile, running, .. } = ingest.take([]);
            profile.fold(&Past { kept: 50, times: &[], running: &running, nodes: 100 });
            let past = profile.compacted();
            let weight: u64 = past.samples.iter().map(|sample| sample.weight).sum();
            assert_eq!(weight, samples, "all weights are there");
            most = most.max(past.frames.len() + past.dsos.len() + past.stacks.len() + past.mappings.len());
            ingest.put_back(past);
        }
    }
    assert!(most < 1000, "{most}");
}

#[test]
fn cut_records_are_counted_and_split_ones_are_joined() {
    let records = [
        comm(7, "sh", EXEC),
        mmap(7, 0x40_0000, "/no/such/shell"),
        fork(7, 8),
        sample(&Kernel { pid: 7, abi: 2, ip: 0x40_0010, stack: Some(&[1, 2, 3]) }),
    ];
    let (whole, _) = ingested(Filter::All, &records);
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    for made in &records {
        let (first, second) = made.bytes.split_at(13);
        ingest
            .record(event, &RawEventRecord::new(made.kind, made.misc, RawData::Split(first, second), info()));
    }
    let (split, statistics) = ingest.finish();
    assert_eq!(kinds(&split, 0), kinds(&whole, 0));
    assert_eq!(statistics.damaged_records, 0);

    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let mut damaged = 0;
    for made in &records {
        for length in 0..made.bytes.len() {
            let mut bytes = made.bytes[..length].to_vec();
            ingest.record(event, &RawEventRecord::new(made.kind, made.misc, RawData::Single(&bytes), info()));
            bytes.fill(0xff);
            ingest.record(event, &RawEventRecord::new(made.kind, made.misc, RawData::Single(&bytes), info()));
            damaged += 1;
        }
    }
    let counted = ingest.finish().1.damaged_records;
    assert!(counted > 0 && counted <= 2 * damaged);
}

/// Records and samples that the kernel reports as lost, and those that the caller reports.
#[test]
fn losses_are_counted() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    // Event number and count.
    for lost in [3, 4] {
        Fields::new().u64s(&[77, lost]).record(RecordType::LOST, 0, 0).feed_to(&mut ingest, event);
    }
    Fields::new().u64s(&[11]).record(RecordType::LOST_SAMPLES, 0, 0).feed_to(&mut ingest, event);
    ingest.weights().add_lost(5);
    let statistics = ingest.finish().1;
    assert_eq!((statistics.lost_records, statistics.lost_samples, statistics.damaged_records), (7, 16, 0));
}

#[test]
fn a_stack_walked_in_the_kernel_keeps_nothing_of_a_copied_one() {
    const IP: u64 = 0x7000_0100;
    let program = "/bin/ls";
    let Some(entry) = entry_offset(program) else {
        skip(Requirement::Files, format_args!("{program} is no program here"));
        return;
    };
    let fields = Fields::new().u32s(&[7, 7]).u64s(&[IP - 0x100, 0x1000, entry - 0x100]);
    let mapped = fields.u32s(&[0, 0]).u64s(&[0, 0]).u32s(&[5, 2]).text(program);
    let mapped = mapped.record(RecordType::MMAP2, IN_USER, 0);
    let of = || sample(&Kernel { pid: 7, abi: 2, ip: IP, stack: Some(&[1]) });
    let mut ingest = Ingest::new(Source::File, Filter::All);
    feed(&mut ingest, &[comm(7, "program", EXEC), mapped, of(), of()]);
    assert_eq!(ingest.stacks.last.0, 1, "the second is the first again");
    let walked = plumb_capture_api::WalkedSample {
        is_stack_only: false,
        time_ns: 1,
        cpu: 0,
        pid: 7,
        tid: 7,
        event: 0,
        syscall: None,
        period: 1,
        key: 0,
        in_kernel: false,
        has_user: true,
        user: 0..1,
        kernel: 0..0,
        script: 0..0,
        script_is_cut: false,
    };
    let event = ingest.add_event("cpu-clock", "ns");
    let parts = plumb_capture_api::Parts {
        user: &[FrameWord::new((IP + 0x10) | FrameWord::NO_RETURN)],
        kernel: &[],
        script: &[],
    };
    ingest.walked(event, &walked, parts);
    let (profile, _) = ingest.finish();
    let stack = profile.samples.iter().find(|sample| sample.time_ns == 1).expect("it was added").stack;
    let frames: Vec<u64> = profile.frames_of(stack).map(|id| profile.frames[id].address.0).collect();
    assert_eq!(frames.len(), 1, "{frames:x?}");
}

#[test]
fn samples_stand_for_what_was_counted_also_where_a_part_has_none() {
    let weights = |parts: [(std::ops::Range<u64>, u64); 2]| {
        let mut ingest = Ingest::new(Source::File, Filter::All);
        let (event, other) = (ingest.add_event("page-faults", "page-faults"), ingest.add_event("cs", "cs"));
        let walked = |time_ns, period| plumb_capture_api::WalkedSample {
            is_stack_only: false,
            time_ns,
            cpu: 0,
            pid: 7,
            tid: 7,
            event: 0,
            syscall: None,
            period,
            key: 0,
            in_kernel: true,
            has_user: false,
            user: 0..0,
            kernel: 0..1,
            script: 0..0,
            script_is_cut: false,
        };
        let parts_of = || plumb_capture_api::Parts { user: &[], kernel: &IN_KERNEL_FRAMES, script: &[] };
        for (event, time_ns, period) in [(event, 1, 1), (event, 2, 3), (event, 11, 5), (other, 12, 9)] {
            ingest.walked(event, &walked(time_ns, period), parts_of());
        }
        ingest.weights().scale_parts(event, &parts);
        ingest.finish().0.samples.iter().map(|sample| sample.weight).collect::<Vec<_>>()
    };
    assert_eq!(weights([(0..10, 8), (10..u64::MAX, 20)]), [2, 6, 20, 9]);
    assert_eq!(weights([(0..20, 18), (20..u64::MAX, 0)]), [2, 6, 10, 9], "nothing was counted later");
    assert_eq!(weights([(0..20, 9), (20..u64::MAX, 9)]), [2, 6, 10, 9], "all of the later ones were lost");
    assert_eq!(weights([(0..1, 9), (1..u64::MAX, 9)]), [2, 6, 10, 9], "all of the earlier ones were lost");
}
