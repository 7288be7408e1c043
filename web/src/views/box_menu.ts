// What can be done with a box of a flame graph.

import type { Frames } from "../model/decode";
import { treeOf, type Place, type Scene } from "../model/scene";
import { pathTo } from "../model/tree";
import type { Choice } from "../widgets/menu";

/** A link to an editor; undefined where the source file isn't known, or there is no editor. */
export function editorLink(editor: string, file: string, line: number): string | undefined {
  if (editor === "" || !file.startsWith("/")) return undefined;
  const path = file.split("/").map(encodeURIComponent).join("/");
  return editor.replaceAll("{file}", path).replaceAll("{line}", String(Math.max(1, line)));
}

export interface BoxActions {
  zoom(place: Place): void;
  calls(place: Place): void;
  /** Undefined: there is nothing to put together. */
  readonly recursion: ((place: Place) => void) | undefined;
  find(name: string): void;
  /** Narrows the page to an interval, in nanoseconds; undefined where nothing has times. */
  readonly interval: ((from: number, to: number) => void) | undefined;
  readonly editor: string;
  readonly more: readonly Choice[];
}

export function boxChoices(scene: Scene, frames: Frames, place: Place, actions: BoxActions): Choice[] {
  const tree = treeOf(scene, place.callers);
  const { box } = place;
  const frame = tree.frame[box];
  const name = frames.name[frame];
  const copy = (text: string) => () => void navigator.clipboard?.writeText(text);
  const stack = () => pathTo(tree, box).filter((at) => at > 0 || tree.depth[box] === 0).map((at) => frames.name[tree.frame[at]]);
  const choices: Choice[] = [
    { label: "Zoom to this box", run: () => actions.zoom(place) },
    { label: "All calls of this function", run: () => actions.calls(place) },
  ];
  const { recursion, interval } = actions;
  if (recursion) choices.push({ label: "Merge its recursion", run: () => recursion(place) });
  const { times } = tree;
  if (interval && times) choices.push({ label: "Select its time", run: () => interval(times.from[box], times.from[box] + times.length[box]) });
  choices.push({ label: "Search for this name", run: () => actions.find(name) }, ...actions.more);
  choices.push({ label: "Copy name", run: copy(name) });
  // Leaf first, as stacks are printed everywhere else. The callers' tree is that way round by itself.
  choices.push({ label: "Copy stack", run: () => copy((place.callers ? stack() : stack().reverse()).join("\n"))() });
  const href = editorLink(actions.editor, frames.file[frame], tree.line[box]);
  if (href !== undefined) choices.push({ label: "Open in editor", href });
  return choices;
}
