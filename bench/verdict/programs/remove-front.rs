//! Takes jobs from the front of a vector, which moves all the others; the fix is a VecDeque.

#[cfg(after)]
type Queue = std::collections::VecDeque<u64>;
#[cfg(not(after))]
type Queue = Vec<u64>;

#[inline(never)]
fn next(jobs: &mut Queue) -> Option<u64> {
    #[cfg(after)]
    return jobs.pop_front();
    #[cfg(not(after))]
    if jobs.is_empty() {
        None
    } else {
        Some(jobs.remove(0)) // SLOW
    }
}

fn main() {
    let mut jobs: Queue = (0..180_000).collect();
    let mut sum = 0;
    while let Some(job) = next(&mut jobs) {
        sum += job;
    }
    eprintln!("{sum}");
}
