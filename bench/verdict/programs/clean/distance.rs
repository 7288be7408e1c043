//! Clean: the edit distance of two texts, by one row of numbers.

#[inline(never)]
fn distance(a: &[u8], b: &[u8], row: &mut [u32]) -> u32 {
    for (i, cell) in row.iter_mut().enumerate() {
        *cell = i as u32;
    }
    for (i, &x) in a.iter().enumerate() {
        let mut corner = row[0];
        let mut left = i as u32 + 1;
        row[0] = left;
        for (cell, &y) in row[1..].iter_mut().zip(b) {
            let best = (corner + u32::from(x != y)).min(left + 1).min(*cell + 1);
            corner = *cell;
            *cell = best;
            left = best;
        }
    }
    row[b.len()]
}

fn main() {
    let a: Vec<u8> = (0..2000u32).map(|i| (i * 7 % 26) as u8).collect();
    let mut b: Vec<u8> = (0..2000u32).map(|i| (i * 11 % 26) as u8).collect();
    let mut row = vec![0; b.len() + 1];
    let mut sum = 0;
    for round in 0..120 {
        b[round] ^= 1;
        sum += distance(&a, &b, &mut row);
    }
    eprintln!("{sum}");
}
