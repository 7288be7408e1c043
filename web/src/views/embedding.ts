// What a picture may ask of the page that it is a part of.

import type { Choice } from "../widgets/menu";
import type { Themes } from "../widgets/theme";

/** What the page gives the picture. */
export interface Embedding {
  readonly themes: Themes;
  /** Aborted when the picture leaves the page. */
  readonly signal: AbortSignal;
  /** What else can be done with a function. */
  choices(name: string): readonly Choice[];
  /** Puts up the picture in the order of time, or of merged stacks; where there are samples behind it. */
  inTime?(isOn: boolean): void;
  /** Narrows the page to an interval, in nanoseconds since the start. */
  interval?(from: number, to: number): void;
  /** Marks on the timeline when a function ran; undefined: none. */
  mark?(name: string | undefined): void;
  /** Link to an editor, with `{file}` and `{line}`. */
  readonly editor?: string;
}
