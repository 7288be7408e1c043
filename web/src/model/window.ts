// The part of a recording that the timeline shows, and how it is made narrower, wider, and moved.

/** Nanoseconds since the start of the recording. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** No narrower: a thousandth of this is what a pixel shows. */
const NARROWEST_NS = 10_000;

export const isWhole = ({ from, to }: Window, whole: number): boolean => from <= 0 && to >= whole;

/** As long, within the recording. */
function within(from: number, length: number, whole: number): Window {
  const kept = Math.min(whole, Math.max(Math.min(whole, NARROWEST_NS), length));
  const begin = Math.max(0, Math.min(whole - kept, from));
  return { from: begin, to: begin + kept };
}

/** `factor` times as long; what was at `fixed` stays where it was. */
export function scaled({ from, to }: Window, factor: number, fixed: number, whole: number): Window {
  const length = Math.min(whole, Math.max(Math.min(whole, NARROWEST_NS), (to - from) * factor));
  return within(fixed - ((fixed - from) * length) / (to - from), length, whole);
}

/** Moved by this part of its length. */
export const moved = ({ from, to }: Window, part: number, whole: number): Window => within(from + part * (to - from), to - from, whole);

/** An interval with a tenth of it on either side. */
export const around = ({ from, to }: Window, whole: number): Window => within(from - (to - from) / 10, (to - from) * 1.2, whole);

/** The time at `x` of an element of this width that shows the window. */
export const timeAt = ({ from, to }: Window, x: number, width: number): number => from + ((to - from) * x) / Math.max(1, width);
