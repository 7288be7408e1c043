// Text as people may see it: names and labels come from any process, and may hide or reverse what stands around them.

/** Characters that have no shape, break the line or change the direction of the text: those of `is_unsafe` in crates/formats/src/escape.rs. */
const UNSAFE =
  /[\0-\x1f\x7f-\x9f\xad\u061c\u180e\ufeff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]/gu;

/** The text with U+FFFD in place of each unsafe character. */
export function printable(text: string): string {
  return text.replace(UNSAFE, "\ufffd");
}
