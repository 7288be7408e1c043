// Holds what is shown, and takes every event to a new state. Views never talk to each other, only to this.

import type { Facts, Frames, Profile } from "../model/decode";
import { amounts, changeOf, rewidened } from "../model/diff";
import { percent } from "../model/format";
import { isVisible, move, type Arrow } from "../model/navigate";
import { leftHeavy } from "../model/order";
import { pivot } from "../model/pivot";
import { isRecursive, withoutRecursion } from "../model/recursion";
import { same, treeOf, type Place, type Scene } from "../model/scene";
import { find, matching, type Found, type Query } from "../model/search";
import { boxChoices } from "./box_menu";
import { boxOfHash, frameOfHash, fromHash, hashOfBox, hashOfFrame, toHash } from "../model/state";
import { pathTo, type Tree } from "../model/tree";
import { byId } from "../widgets/dom";
import { openMenu, type Choice } from "../widgets/menu";
import { MARK_NAMES, paletteFor, type Palette } from "../widgets/palette";
import type { Theme, Themes } from "../widgets/theme";
import { Tooltip } from "../widgets/tooltip";
import { Crumb } from "./crumb";
import { Details } from "./details";
import { Graph } from "./graph";
import { heaviestFiles, showLegend } from "./legend";
import { listenFor } from "./shortcuts";
import { Toolbar, type Order } from "./toolbar";

const ROOT: Place = { callers: false, box: 0 };

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

/** Recursion of all functions is put together, where it is direct. */
const ALL = -2;
const NONE = -1;
const TAP_TWICE_MS = 450;

export class App {
  private readonly frames: Frames;
  private readonly facts: Facts;
  private tree: Tree;
  /** As it came: in the order of names, or of time. */
  private readonly given: Tree;
  /** Whether boxes are in the order of their weights instead. */
  private heavy = false;
  /** Whether colours say which file code is in, not what kind it is of. */
  private byFile = false;
  /** The function whose recursion is put together; `ALL` or `NONE`. */
  private merged = NONE;
  private readonly icicleByDefault: boolean;
  private readonly graph: Graph;
  private readonly toolbar: Toolbar;
  private readonly details: Details;
  private readonly crumb: Crumb;
  private readonly tooltip = new Tooltip();
  private readonly themes: Themes;
  private palette: Palette;

  private scene: Scene;
  /** The function whose calls are put together, -1 if none. */
  private calls = -1;
  private query: Query | undefined;
  private found: Found | undefined;
  private selected: Place | undefined;
  /** Of a differential picture: whether base and new are exchanged, and whether all code is shown. */
  private swapped = false;
  private all = false;
  private lastTap = { time: 0, place: ROOT };

  constructor(
    profile: Profile,
    private readonly embedding: Embedding,
  ) {
    this.frames = profile.frames;
    this.facts = profile.facts;
    this.tree = profile.tree;
    this.given = profile.tree;
    const isDiff = profile.facts.diff !== undefined;
    this.icicleByDefault = profile.facts.icicle === true;
    this.scene = { tree: this.tree, icicle: this.icicleByDefault, zoom: ROOT };
    this.themes = embedding.themes;
    const { signal } = embedding;
    const heard = { signal };
    this.themes.listen(() => this.recolour(), signal);
    this.palette = this.colours(this.themes.current);
    signal.addEventListener("abort", () => this.tooltip.remove());
    this.details = new Details(byId("details"), this.frames, profile.facts, this.tree.total[0], {
      zoom: (place) => this.zoom(place),
      calls: (place) => this.pivot(place),
      copy: (text) => void navigator.clipboard?.writeText(text),
    });
    this.crumb = new Crumb(byId("crumb"), () => this.leavePivot());
    const abilities = { isDiff, hasTime: embedding.inTime !== undefined, hasFiles: profile.frames.dso.some((dso) => dso !== "") };
    this.toolbar = new Toolbar(byId("toolbar"), {
      search: (query) => this.search(query),
      step: (forward) => this.step(forward),
      leave: () => this.graph.focus(),
      reset: () => this.reset(),
      invert: () => this.invert(),
      reorder: (order) => this.reorder(order),
      colour: (byFile) => this.paint(byFile),
      swap: () => this.swap(),
      widen: () => this.widen(),
    }, abilities);
    this.graph = new Graph(byId("graph"), {
      hover: (place, event) => this.hover(place, event),
      press: (place, isTouch) => this.press(place, isTouch),
      menu: (place, x, y) => this.menu(place, x, y),
      key: (event) => this.graphKey(event),
    });
    this.restore();
    addEventListener("popstate", () => this.restore(), heard);
    listenFor(this.shortcuts(), signal);
    addEventListener("beforeprint", () => this.print(true), heard);
    addEventListener("afterprint", () => this.print(false), heard);
  }

  // --- state and address ---

  /** Takes the state from the page's address. */
  private restore(): void {
    const state = fromHash(location.hash, this.icicleByDefault);
    this.lookAt(state.swapped === true, state.all === true);
    this.byFile = state.byFile === true;
    const merged = state.merged === undefined ? NONE : state.merged === "all" ? ALL : frameOfHash(this.frames, state.merged);
    this.arrange(state.heavy === true, merged);
    this.dress(this.themes.current);
    const frame = state.calls === undefined ? -1 : frameOfHash(this.frames, state.calls);
    this.enter(frame, state.icicle);
    if (state.zoom !== undefined) {
      const callers = state.callers && this.scene.callers !== undefined;
      const box = boxOfHash(this.frames, treeOf(this.scene, callers), state.zoom);
      if (box > 0) this.scene = { ...this.scene, zoom: { callers, box } };
    }
    this.query = state.find === undefined ? undefined : { text: state.find, regex: state.regex };
    this.toolbar.set(this.query);
    this.selected = this.scene.zoom.box > 0 ? this.scene.zoom : undefined;
    this.look();
    this.show(true);
  }

  /** Writes the state to the page's address; `isStep`: as a step that Back undoes. */
  private remember(isStep: boolean): void {
    const { zoom, icicle } = this.scene;
    const hash = toHash(
      {
        ...(zoom.box > 0 ? { zoom: hashOfBox(this.frames, treeOf(this.scene, zoom.callers), zoom.box) } : {}),
        ...(this.query ? { find: this.query.text } : {}),
        ...(this.calls >= 0 ? { calls: hashOfFrame(this.frames, this.calls) } : {}),
        regex: this.query?.regex === true,
        icicle,
        callers: zoom.callers,
        swapped: this.swapped,
        heavy: this.heavy,
        byFile: this.byFile,
        ...(this.merged === NONE ? {} : { merged: this.merged === ALL ? "all" : hashOfFrame(this.frames, this.merged) }),
        all: this.all && this.facts.diff !== undefined,
      },
      this.icicleByDefault,
    );
    if (hash === location.hash.slice(1)) return;
    const url = hash === "" ? location.pathname + location.search : `#${hash}`;
    try {
      if (isStep) history.pushState(null, "", url);
      else history.replaceState(null, "", url);
    } catch {
      // Some browsers let a page from a file change nothing but its hash.
      location.hash = hash;
    }
  }

  /** Puts up the scene of one function's calls, or of everything. */
  private enter(frame: number, icicle: boolean): void {
    if (frame === this.calls && frame >= 0) {
      this.scene = { ...this.scene, icicle, zoom: ROOT };
      return;
    }
    this.calls = frame;
    if (frame < 0) {
      this.scene = { tree: this.tree, icicle, zoom: ROOT };
      return;
    }
    const { callees, callers } = pivot(this.tree, frame);
    this.scene = { tree: callees, callers, icicle, zoom: ROOT };
  }

  private show(follow: boolean): void {
    const { frames, palette, scene, found, selected } = this;
    // Before the graph, which looks at the place that is left for it.
    const recursion = this.merged === NONE ? undefined : this.merged === ALL ? "" : this.frames.name[this.merged];
    this.crumb.show(this.calls < 0 ? undefined : this.frames.name[this.calls], recursion, percent(scene.tree.total[0], this.tree.total[0]));
    this.graph.show({ frames, palette, scene, found, selected, swapped: this.swapped }, follow);
    const isReset = scene.zoom.box === 0 && this.calls < 0 && this.merged === NONE && !this.query;
    this.toolbar.state(isReset, scene.icicle);
    const named = selected && selected.box > 0 ? this.frames.name[treeOf(scene, selected.callers).frame[selected.box]] : undefined;
    this.embedding.mark?.(named);
    this.describe(selected, true);
  }

  // --- actions ---

  private zoom(place: Place): void {
    const target = place.box === 0 ? ROOT : place;
    this.selected = place;
    if (!same(target, this.scene.zoom)) this.scene = { ...this.scene, zoom: target };
    this.look();
    this.show(true);
    this.remember(true);
  }

  private pivot(place: Place): void {
    const frame = treeOf(this.scene, place.callers).frame[place.box];
    if (this.frames.kind[frame] === "root") return;
    this.enter(frame, this.scene.icicle);
    this.selected = ROOT;
    this.look();
    this.show(true);
    this.remember(true);
  }

  private leavePivot(): void {
    this.arrange(this.heavy, NONE);
    this.enter(-1, this.scene.icicle);
    this.selected = undefined;
    this.look();
    this.show(true);
    this.remember(true);
  }

  private reset(): void {
    this.arrange(this.heavy, NONE);
    this.enter(-1, this.scene.icicle);
    this.query = undefined;
    this.selected = undefined;
    this.toolbar.set(undefined);
    this.look();
    this.show(true);
    this.remember(true);
  }

  /** Takes on an order of boxes, and which recursion is put together; every scene made before is of another tree. */
  private arrange(heavy: boolean, merged: number): void {
    // Pictures of time and of differences have an order of their own.
    const isFixed = this.given.times !== undefined || this.facts.diff !== undefined;
    const order: Order = this.given.times ? "time" : heavy ? "weight" : "name";
    this.toolbar.look(order, this.byFile);
    heavy &&= !isFixed;
    if (heavy === this.heavy && merged === this.merged) return;
    this.heavy = heavy;
    this.merged = merged;
    const tree = merged === NONE ? this.given : withoutRecursion(this.given, merged === ALL ? -1 : merged);
    this.tree = this.widened(heavy ? leftHeavy(tree) : tree, this.all);
    this.calls = -1;
  }

  /** Takes on another arrangement; what is zoomed to stays, where it is still there. */
  private rearrange(heavy: boolean, merged: number): void {
    const { calls, scene } = this;
    const zoom = scene.zoom.box > 0 ? hashOfBox(this.frames, treeOf(scene, scene.zoom.callers), scene.zoom.box) : undefined;
    this.arrange(heavy, merged);
    this.enter(calls, scene.icicle);
    const box = zoom === undefined ? 0 : boxOfHash(this.frames, treeOf(this.scene, scene.zoom.callers), zoom);
    if (box > 0) this.scene = { ...this.scene, zoom: { callers: scene.zoom.callers, box } };
    this.selected = box > 0 ? this.scene.zoom : undefined;
    this.look();
    this.show(true);
    this.remember(true);
  }

  private reorder(order: Order): void {
    if (order === "time") this.embedding.inTime?.(true);
    else if (this.given.times) this.embedding.inTime?.(false);
    else this.rearrange(order === "weight", this.merged);
  }

  /** Goes through the orders that there are. */
  private nextOrder(): void {
    if (this.given.times) this.reorder("name");
    else if (!this.heavy) this.reorder("weight");
    else if (this.embedding.inTime) this.reorder("time");
    else this.reorder("name");
  }

  private mergeRecursion(merged: number): void {
    this.rearrange(this.heavy, this.merged === merged ? NONE : merged);
  }

  private paint(byFile: boolean): void {
    this.byFile = byFile;
    this.toolbar.look(this.given.times ? "time" : this.heavy ? "weight" : "name", byFile);
    this.recolour();
    this.remember(false);
  }

  private invert(): void {
    this.scene = { ...this.scene, icicle: !this.scene.icicle };
    this.show(true);
    this.remember(true);
  }

  /** Takes on how a differential picture is looked at. */
  private lookAt(swapped: boolean, all: boolean): void {
    if (!this.facts.diff) return;
    this.swapped = swapped;
    this.details.swapped = swapped;
    this.tree = this.widened(this.tree, all);
    this.calls = -1;
    this.toolbar.diff(this.swapped, this.all);
  }

  /** A differential picture in widths of changes, or of all code, as where nothing at all changed. */
  private widened(tree: Tree, all: boolean): Tree {
    if (!this.facts.diff) return tree;
    const changes = rewidened(tree, "changes");
    this.all = all || changes.total[0] === 0;
    return this.all ? rewidened(tree, "all") : changes;
  }

  private swap(): void {
    this.turn(!this.swapped, this.all);
  }

  private widen(): void {
    this.turn(this.swapped, !this.all);
  }

  private turn(swapped: boolean, all: boolean): void {
    if (!this.facts.diff) return;
    const { calls, scene } = this;
    this.lookAt(swapped, all);
    this.enter(calls, scene.icicle);
    // The boxes are the same ones; but one that did not change has no width among changes.
    const isWide = treeOf(this.scene, scene.zoom.callers).total[scene.zoom.box] > 0;
    this.scene = { ...this.scene, zoom: isWide ? scene.zoom : ROOT };
    this.look();
    this.show(true);
    this.remember(true);
  }

  private search(query: Query | undefined): void {
    this.query = query;
    if (this.look()) this.remember(false);
    this.show(false);
  }

  /** Finds what is searched for. False if it is no regular expression. */
  private look(): boolean {
    this.found = undefined;
    if (!this.query) {
      this.toolbar.matched(undefined);
      return true;
    }
    try {
      this.found = find(this.tree, matching(this.frames, this.query));
    } catch {
      this.toolbar.wrong("not a regular expression");
      return false;
    }
    const whole = this.tree.total[0];
    const { zoom } = this.scene;
    const tree = treeOf(this.scene, zoom.callers);
    const zoomed = { weight: find(tree, this.found.frames, zoom.box).weight, whole: tree.total[zoom.box] };
    const isZoomed = zoomed.whole !== whole;
    this.toolbar.matched({ weight: this.found.weight, whole, ...(isZoomed ? { zoomed } : {}) });
    return true;
  }

  /** Selects the next match that can be seen, from left to right and round again. */
  private step(forward: boolean): void {
    if (!this.found) return;
    const { zoom } = this.scene;
    const boxes = find(treeOf(this.scene, zoom.callers), this.found.frames, zoom.box).outermost;
    const seen = boxes.filter((box) => isVisible(this.scene, zoom.callers, box, this.graph.width));
    if (seen.length === 0) return;
    const at = this.selected?.callers === zoom.callers ? this.selected.box : -1;
    if (!forward) seen.reverse();
    const next = seen.find((box) => (forward ? box > at : at >= 0 && box < at));
    this.select({ callers: zoom.callers, box: next ?? seen[0] });
  }

  private select(place: Place): void {
    this.selected = place;
    this.show(false);
    this.graph.reveal(place);
  }

  // --- events ---

  private press(place: Place, isTouch: boolean): void {
    this.tooltip.hide();
    if (!isTouch) {
      this.zoom(place);
      return;
    }
    const now = performance.now();
    const isSecond = now - this.lastTap.time < TAP_TWICE_MS && same(place, this.lastTap.place);
    this.lastTap = { time: now, place };
    if (isSecond) this.zoom(place);
    else this.select(place);
  }

  private hover(place: Place | undefined, event: PointerEvent): void {
    if (!place) {
      this.tooltip.hide();
      this.describe(this.selected, true);
      return;
    }
    this.describe(place, same(place, this.selected));
    const tree = treeOf(this.scene, place.callers);
    const share = percent(tree.total[place.box], this.tree.total[0]);
    const name = this.frames.name[tree.frame[place.box]];
    const change = amounts(tree, place.box, this.swapped);
    if (change) {
      const { base, next, mark } = change;
      this.tooltip.show(event.clientX, event.clientY, name, `${changeOf(base, next, this.facts.unit)}, ${MARK_NAMES[mark]}`);
      return;
    }
    const self = tree.self[place.box] > 0 ? `, self ${percent(tree.self[place.box], this.tree.total[0])}` : "";
    this.tooltip.show(event.clientX, event.clientY, name, `${share} of all${self}`);
  }

  private describe(place: Place | undefined, isChosen: boolean): void {
    if (place) this.details.show(this.scene, place, isChosen);
    else this.details.clear();
  }

  private menu(place: Place, x: number, y: number): void {
    this.tooltip.hide();
    this.select(place);
    const { frames, scene, embedding } = this;
    const frame = treeOf(scene, place.callers).frame[place.box];
    const choices = boxChoices(scene, frames, place, {
      zoom: (at) => this.zoom(at),
      calls: (at) => this.pivot(at),
      recursion: isRecursive(this.given, frame) ? () => this.mergeRecursion(frame) : undefined,
      find: (name) => this.searchFor(name),
      interval: embedding.interval,
      editor: embedding.editor ?? "",
      more: frames.kind[frame] === "root" ? [] : embedding.choices(frames.name[frame]),
    });
    openMenu(x, y, choices);
  }

  private searchFor(name: string): void {
    this.query = { text: name, regex: false };
    this.toolbar.set(this.query);
    this.search(this.query);
  }

  /** Keys while the graph has the focus. */
  private graphKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = /^Arrow(Up|Down|Left|Right)$/.exec(event.key)?.[1]?.toLowerCase();
    if (arrow !== undefined) {
      this.select(this.selected ? move(this.scene, this.selected, arrow as Arrow, this.graph.width) : this.scene.zoom);
    } else if (event.key === "Enter" && this.selected) {
      this.zoom(this.selected);
    } else {
      return;
    }
    event.preventDefault();
  }

  private shortcuts(): Readonly<Record<string, () => void>> {
    const reset = () => this.reset();
    return {
      "/": () => this.toolbar.focus(),
      n: () => this.step(true),
      N: () => this.step(false),
      i: () => this.invert(),
      o: () => this.nextOrder(),
      m: () => this.paint(!this.byFile),
      r: () => this.mergeRecursion(ALL),
      s: () => this.swap(),
      w: () => this.widen(),
      c: () => this.pivot(this.selected ?? ROOT),
      Backspace: () => this.zoomOut(),
      Escape: reset,
      "0": reset,
    };
  }

  private zoomOut(): void {
    const { zoom } = this.scene;
    const path = pathTo(treeOf(this.scene, zoom.callers), zoom.box);
    this.zoom({ callers: zoom.callers, box: path[Math.max(0, path.length - 2)] });
  }

  private colours(theme: Theme): Palette {
    return paletteFor(theme, this.frames, this.byFile ? heaviestFiles(this.frames, this.given).map(({ file }) => file) : undefined);
  }

  private dress(theme: Theme): void {
    this.palette = this.colours(theme);
    showLegend(byId("legend"), this.frames, this.given, theme, this.byFile);
  }

  private recolour(): void {
    this.dress(this.themes.current);
    this.show(false);
  }

  /** Paper is white. */
  private print(on: boolean): void {
    const theme = on ? "light" : this.themes.current;
    this.dress(theme);
    if (on) this.palette = { ...this.palette, background: 0xffffff };
    this.show(false);
    this.graph.print(on);
  }
}
