//! Takes each character by its number, counting from the start each time; the fix goes through them once.
fn vowels(text: &str) -> usize {
    let is_vowel = |c: char| "aeiouäöü".contains(c);
    if cfg!(after) {
        return text.chars().filter(|&c| is_vowel(c)).count();
    }
    let length = text.chars().count();
    let mut count = 0;
    for number in 0..length {
        if text.chars().nth(number).is_some_and(is_vowel) { // SLOW
            count += 1;
        }
    }
    count
}

fn main() {
    let text = "ein längerer Satz über nichts Besonderes; ".repeat(4000);
    eprintln!("{}", vowels(std::hint::black_box(&text)));
}
