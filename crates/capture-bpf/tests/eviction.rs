//! Tables stay within their memory limit, and an evicted table comes back.

mod setup;

use plumb_capture_bpf::LoadOptions;
use setup::{Folder, alone, command, is_complete, load, record};

#[test]
fn tables_make_room_for_others() {
    let _alone = alone();
    let table_memory = 192 << 10;
    let Some(programs) = load(LoadOptions { table_memory, ..LoadOptions::default() }) else { return };
    let folder = Folder::new("eviction");
    let names = ["one", "two", "three", "four"];
    let burn = names.iter().enumerate().map(|(seed, name)| {
        let seed = format!("-DSEED={seed}");
        format!("{} 300", folder.compile("many.c", name, &["-static", &seed]))
    });
    let round = burn.collect::<Vec<_>>().join("; ");
    // Evicted memory is reused only a second later: by the last rounds, every table has been evicted and reloaded.
    let script = format!("for round in 1 2 3 4; do {round}; done");
    let recorded = record(programs, &command(&["sh", "-c", &script]), None);

    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    let samples = recorded.profile.samples.len() as u64;
    println!("{handed_over:?} of {samples}");
    assert!(handed_over.evicted >= 4, "{handed_over:?}");
    assert_eq!(handed_over.table_bytes, 8 << 20, "one piece, as the smallest there is");
    let wanted = recorded.target_cpu.expect("a command's time is known").total().as_secs_f64()
        * setup::rate(&recorded);
    let range = wanted * 0.95..wanted * 1.05 + setup::stolen() * setup::rate(&recorded);
    assert!(range.contains(&(samples as f64)), "{samples} of {wanted}");
    assert_eq!(recorded.statistics.lost_samples, 0);
    let complete = recorded.profile.samples.iter().filter(|sample| is_complete(&recorded.profile, sample));
    assert!(complete.count() * 100 >= samples as usize * 99, "{:?}", recorded.statistics);
    // Stacks are copied during eviction. Each of the four had its turn, otherwise the share would be less than a quarter.
    assert!(handed_over.walked * 100 >= samples * 25, "{handed_over:?}");
}
