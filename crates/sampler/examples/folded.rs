//! A program that profiles two of its threads and writes folded stacks to standard output.

use std::hint::black_box;
use std::time::{Duration, Instant};

use plumb_sampler::{Options, Stacks};

#[inline(never)]
fn square_roots(n: u64) -> f64 {
    (0..n).map(|i| black_box(i as f64).sqrt()).sum()
}

#[inline(never)]
fn remainders(n: u64) -> u64 {
    (1..n).map(|i| black_box(n) % i).sum()
}

fn work(time: Duration) -> Result<(), plumb_sampler::Error> {
    plumb_sampler::register_thread()?;
    let start = Instant::now();
    while start.elapsed() < time {
        black_box(square_roots(100_000));
        black_box(remainders(100_000));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    plumb_sampler::start(Options::default())?;
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(|| work(Duration::from_secs(1)))).collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    let mut stacks = Stacks::default();
    plumb_sampler::drain(|tid, stack| stacks.add(tid, stack))?;
    stacks.write_folded(&mut std::io::stdout())?;
    eprintln!("{:?}", plumb_sampler::statistics()?);
    Ok(plumb_sampler::stop()?)
}
