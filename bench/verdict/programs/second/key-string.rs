//! Makes a String of the name for each look-up; the fix looks up by &str.
use std::collections::HashMap;

#[inline(never)]
fn stock(stocks: &HashMap<String, u32>, name: &str) -> u32 {
    if cfg!(after) {
        return stocks.get(name).copied().unwrap_or(0);
    }
    stocks.get(&name.to_string()).copied().unwrap_or(0) // SLOW
}

fn main() {
    let names: Vec<String> = (0..64).map(|n| format!("n{n}")).collect();
    let stocks: HashMap<String, u32> = names.iter().cloned().zip(0..).collect();
    let mut total = 0u64;
    for i in 0..25_000_000usize {
        total += u64::from(stock(&stocks, &names[i % names.len()]));
    }
    eprintln!("{total}");
}
