//! Lives from records made by hand: what real programs do only now and then.

use plumb_profile::{Begin, Id, Life, LifeEnd};

use super::tests::{EXEC, Fields, Kernel, Made, at, comm, exit, feed, fork, ingested, mmap, sample};
use super::*;

fn lives(records: &[Made]) -> Vec<Life> {
    ingested(Filter::All, records).0.lives.rows().to_vec()
}

fn hit(pid: u32) -> Made {
    sample(&Kernel { pid, abi: 0, ip: 0, stack: None })
}

#[test]
fn a_life_needs_no_sample() {
    let (profile, _) = ingested(
        Filter::All,
        &[
            at(10, fork(1, 7)),
            at(20, comm(7, "dirname", EXEC)),
            at(21, mmap(7, 0x40_0000, "/usr/bin/dirname")),
            at(30, exit(7, 0)),
        ],
    );
    let [parent, forked, execed] = profile.lives.rows() else { panic!("{:?}", profile.lives) };
    assert_eq!(
        (parent.pid, parent.begin, parent.start_ns, parent.end),
        (1, Begin::Running, None, LifeEnd::Running)
    );
    assert_eq!((forked.begin, forked.end), (Begin::Fork, LifeEnd::Exec));
    assert_eq!((forked.start_ns, forked.end_ns), (Some(10), Some(20)));
    assert_eq!((execed.begin, execed.end), (Begin::Exec, LifeEnd::Exit));
    assert_eq!((execed.start_ns, execed.end_ns), (Some(20), Some(30)));
    assert_eq!(forked.parent, execed.parent);
    assert_eq!(profile.strings.get(execed.exe), "/usr/bin/dirname");
    assert_eq!(profile.strings.get(execed.comm), "dirname");
    assert!(profile.processes.is_empty());
}

#[test]
fn samples_lead_to_lives() {
    let records = [at(10, fork(1, 7)), hit(7), at(20, comm(7, "true", EXEC)), hit(7), at(30, exit(7, 0))];
    // The end of its exit, after the record.
    let (profile, _) = ingested(Filter::All, &[&records[..], &[hit(7)]].concat());
    let of = |index| {
        let thread = profile.samples.get(index).unwrap().thread;
        let process = Some(profile.threads[thread].process);
        let mut lives = profile.lives.rows().iter().filter(|life| life.process == process);
        (lives.next().unwrap().begin, lives.next())
    };
    assert_eq!(of(0), (Begin::Fork, None));
    assert_eq!(of(1), (Begin::Exec, None));
    assert_eq!(of(2), (Begin::Exec, None));
}

#[test]
fn a_process_lives_until_its_last_thread_has_gone() {
    let thread = |tid| Fields::new().u32s(&[7, 7, tid, 7]).u64s(&[0]).record(RecordType::FORK, 0, 0);
    let gone = |tid| Fields::new().u32s(&[7, 1, tid, 1]).u64s(&[0]).record(RecordType::EXIT, 0, 0);
    let records = [at(10, fork(1, 7)), at(20, thread(8)), at(30, gone(7)), at(40, gone(8))];
    assert_eq!(lives(&records)[1].end_ns, Some(40));
    assert_eq!(lives(&records[..3])[1].end, LifeEnd::Running);
}

#[test]
fn a_number_used_again_ends_the_life_before() {
    let found = lives(&[at(10, fork(1, 7)), at(50, fork(1, 7)), at(60, exit(7, 0))]);
    assert_eq!((found[1].end, found[1].end_ns), (LifeEnd::Exit, Some(50)), "its exit was lost");
    assert_eq!((found[2].start_ns, found[2].end_ns), (Some(50), Some(60)));
}

#[test]
fn parents_come_before_their_children_and_circles_end() {
    // A recorder's word on what ran before: 5 is the parent of 6, 6 of 5.
    let told = |parent: u32, pid: u32| {
        let mut made = fork(parent, pid);
        made.misc = EXEC;
        made
    };
    let found = lives(&[told(6, 5), told(5, 6), told(6, 7), hit(7)]);
    assert_eq!(found.len(), 3);
    for (index, life) in found.iter().enumerate() {
        assert!(life.parent.is_none_or(|parent| Id::index(parent) < index));
        assert_eq!(life.begin, Begin::Running);
    }
}

#[test]
fn strangers_have_no_life_here() {
    let records = [at(10, fork(1, 7)), at(11, fork(7, 8)), at(12, exit(7, 0)), at(13, exit(8, 0))];
    let (profile, _) = ingested(Filter::Tree(vec![7]), &records);
    // 7 was followed before it was forked by a stranger, which means that its number is used again.
    assert!(profile.lives.is_empty(), "{:?}", profile.lives);
    let (profile, _) = ingested(Filter::Tree(vec![1]), &records);
    assert_eq!(profile.lives.rows().iter().map(|life| life.pid).collect::<Vec<_>>(), [1, 7, 8]);
}

#[test]
fn another_thread_that_execs_becomes_the_first_and_time_stays_in_its_life() {
    let thread = |tid| Fields::new().u32s(&[7, 7, tid, 7]).u64s(&[0]).record(RecordType::FORK, 0, 0);
    let gone = |tid| Fields::new().u32s(&[7, 1, tid, 1]).u64s(&[0]).record(RecordType::EXIT, 0, 0);
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let before = [at(10, fork(1, 7)), at(20, thread(8)), at(21, thread(9)), at(30, gone(9)), at(40, gone(7))];
    feed(&mut ingest, &before);
    let event = EventId::from_index(0);
    // Thread 8 execs, and has the number 7 from then on, as the one that was first has 8.
    at(50, comm(7, "after", EXEC)).feed_to(&mut ingest, event);
    ingest.processes().spent((7, 7), 100, true);
    ingest.processes().spent((7, 9), 20, false);
    ingest.processes().spent((7, 8), 3, false);
    hit(7).feed_to(&mut ingest, event);
    // More exits than are remembered: the thread that took the number over is not one of them.
    for pid in 100..200 {
        at(60, fork(1, pid)).feed_to(&mut ingest, event);
        at(61, exit(pid, 1)).feed_to(&mut ingest, event);
    }
    hit(7).feed_to(&mut ingest, event);
    at(70, exit(7, 0)).feed_to(&mut ingest, event);
    ingest.processes().spent((7, 7), 400, false);
    let (profile, _) = ingest.finish();
    let lives: Vec<_> = profile.lives.rows().iter().filter(|life| life.pid == 7).collect();
    let [before, after] = lives[..] else { panic!("{lives:?}") };
    assert_eq!((before.end, before.cpu_ns), (LifeEnd::Exec, Some(100 + 20 + 3)));
    assert_eq!((after.end, after.cpu_ns), (LifeEnd::Exit, Some(300)));
    let names = profile.threads.rows().iter().map(|thread| profile.strings.get(thread.comm));
    assert_eq!(names.collect::<Vec<_>>(), ["after"], "one row for both samples");
}

#[test]
fn a_first_thread_that_is_freed_before_the_record_of_the_exec_counts_once() {
    let thread = |tid| Fields::new().u32s(&[7, 7, tid, 7]).u64s(&[0]).record(RecordType::FORK, 0, 0);
    let gone = |tid| Fields::new().u32s(&[7, 1, tid, 1]).u64s(&[0]).record(RecordType::EXIT, 0, 0);
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let first = [at(10, fork(1, 7)), at(20, thread(8)), at(40, gone(7)), at(50, comm(7, "second", EXEC))];
    feed(&mut ingest, &first);
    let event = EventId::from_index(0);
    ingest.processes().spent((7, 7), 100, true);
    ingest.processes().spent((7, 8), 1, false);
    // Once more: the account of who was the first comes before the record.
    [at(60, thread(9)), at(70, gone(7))].iter().for_each(|made| made.feed_to(&mut ingest, event));
    ingest.processes().spent((7, 9), 130, false);
    at(80, comm(7, "third", EXEC)).feed_to(&mut ingest, event);
    ingest.processes().spent((7, 7), 50, true);
    at(90, exit(7, 0)).feed_to(&mut ingest, event);
    ingest.processes().spent((7, 7), 90, false);
    let (profile, _) = ingest.finish();
    let lives = profile.lives.rows().iter().filter(|life| life.pid == 7);
    assert_eq!(lives.map(|life| life.cpu_ns).collect::<Vec<_>>(), [Some(101), Some(30 + 50), Some(40)]);
}
