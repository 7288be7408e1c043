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
  /** Aborted when the view leaves the page, or shows something else. */
  readonly signal: AbortSignal;
  /** A word of the address that is the view's own, such as the function whose callers are shown. */
  readonly detail: string;
  /** Narrows the selection. */
  select(term: Term): void;
  /** Goes to a view, with its own word. */
  go(view: string, detail?: string): void;
  /** What can be done with a function, for menus. */
  choices(name: string): readonly Choice[];
}

export interface View {
  readonly id: string;
  readonly title: string;
  /** Fills an empty host. */
  show(host: HTMLElement, context: ViewContext): Promise<void>;
}
