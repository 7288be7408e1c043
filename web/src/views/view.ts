// What a view of the page is, and what it is given.

import type { RecordingClient } from "../api/client";
import type { RecordingAbout, RecordingEntry } from "../api/types";
import type { Term } from "../model/selection";
import type { Choice } from "../widgets/menu";
import type { Themes } from "../widgets/theme";

/** One selection of one recording, and what a view may do to the page. */
export interface ViewContext {
  readonly client: RecordingClient;
  readonly about: RecordingAbout;
  readonly recording: RecordingEntry;
  readonly recordings: readonly RecordingEntry[];
  readonly terms: readonly Term[];
  readonly themes: Themes;
  /** Whether the page is a file, which holds one selection. */
  readonly isFile: boolean;
  /** Whether this is what a store has of profiles: neither files of programs nor times of samples. */
  readonly isStore: boolean;
  /** Aborted when the view leaves the page, or shows something else. */
  readonly signal: AbortSignal;
  /** A word of the address that is the view's own, such as the function whose callers are shown. */
  readonly detail: string;
  /** Narrows the selection. */
  select(term: Term): void;
  /** Narrows the selection and goes to a view. */
  open(view: string, term: Term): void;
  /** Goes to a view, with its own word. */
  go(view: string, detail?: string): void;
  /** What can be done with a function, for menus. */
  choices(name: string): readonly Choice[];
  /** Marks on the timeline when a function ran; undefined: none. */
  mark(name: string | undefined): void;
  /** Link to an editor, with `{file}` and `{line}`; empty: none. */
  readonly editor: string;
}

export interface View {
  readonly id: string;
  readonly title: string;
  /** Whether it shows something of a recording without samples. */
  readonly needsNoSamples?: boolean;
  /** Fills an empty host. */
  show(host: HTMLElement, context: ViewContext): Promise<void>;
}
