// Holds what is shown, and takes every event to a new state. Views never talk to each other, only to this.

import type { Facts, Frames, Profile } from "../model/decode";
import { percent } from "../model/format";
import { isVisible, move, type Arrow } from "../model/navigate";
import { pivot } from "../model/pivot";
import { isRecursive } from "../model/recursion";
import { same, treeOf, type Place, type Scene } from "../model/scene";
import { find, matching, type Found, type Query } from "../model/search";
import { boxOfHash, frameOfHash, fromHash, hashOfBox, hashOfFrame, toHash } from "../model/state";
import { pathTo } from "../model/tree";
import * as address from "../widgets/address";
import { byId } from "../widgets/dom";
import { openMenu } from "../widgets/menu";
import type { Themes } from "../widgets/theme";
import { Tooltip } from "../widgets/tooltip";
import { ALL, Arrangement, NONE } from "./arrangement";
import { boxChoices } from "./box_menu";
import { boxTip } from "./box_tip";
import { Colouring } from "./colouring";
import { Crumb } from "./crumb";
import { Details } from "./details";
import type { Embedding } from "./embedding";
import { Graph } from "./graph";
import { listenFor } from "./shortcuts";
import { Toolbar, type Order } from "./toolbar";

const ROOT: Place = { callers: false, box: 0 };

const TAP_TWICE_MS = 450;

export class App {
  private readonly frames: Frames;
  private readonly facts: Facts;
  /** Number of boxes that are too small to be in the picture. */
  private readonly leftOut: number;
  private readonly arrangement: Arrangement;
  private readonly colouring: Colouring;
  private readonly icicleByDefault: boolean;
  private readonly graph: Graph;
  private readonly toolbar: Toolbar;
  private readonly details: Details;
  private readonly crumb: Crumb;
  private readonly tooltip = new Tooltip();
  private readonly themes: Themes;

  private scene: Scene;
  /** The function whose calls are put together, -1 if none. */
  private calls = -1;
  private query: Query | undefined;
  private found: Found | undefined;
  private selected: Place | undefined;
  private lastTap = { time: 0, place: ROOT };

  constructor(
    profile: Profile,
    private readonly embedding: Embedding,
  ) {
    this.frames = profile.frames;
    this.facts = profile.facts;
    this.leftOut = profile.leftOut;
    this.arrangement = new Arrangement(profile.tree, profile.facts);
    const isDiff = profile.facts.diff !== undefined;
    this.icicleByDefault = profile.facts.icicle === true;
    this.scene = { tree: profile.tree, icicle: this.icicleByDefault, zoom: ROOT };
    this.themes = embedding.themes;
    const { signal } = embedding;
    const heard = { signal };
    this.themes.listen(() => this.recolour(), signal);
    this.colouring = new Colouring(profile.frames, profile.tree, this.themes.current);
    signal.addEventListener("abort", () => this.tooltip.remove());
    this.details = new Details(byId("details"), this.frames, profile.facts, profile.tree.total[0], {
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
    this.colouring.byFile = state.byFile === true;
    const merged = state.merged === undefined ? NONE : state.merged === "all" ? ALL : frameOfHash(this.frames, state.merged);
    this.arrange(state.heavy === true, merged);
    this.colouring.dress(this.themes.current);
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
        swapped: this.arrangement.swapped,
        heavy: this.arrangement.heavy,
        byFile: this.colouring.byFile,
        ...(this.arrangement.merged === NONE ? {} : { merged: this.arrangement.merged === ALL ? "all" : hashOfFrame(this.frames, this.arrangement.merged) }),
        all: this.arrangement.all && this.facts.diff !== undefined,
      },
      this.icicleByDefault,
    );
    if (hash !== location.hash.slice(1)) address.putHash(hash, isStep);
  }

  /** Puts up the scene of one function's calls, or of everything. */
  private enter(frame: number, icicle: boolean): void {
    if (frame === this.calls && frame >= 0) {
      this.scene = { ...this.scene, icicle, zoom: ROOT };
      return;
    }
    this.calls = frame;
    if (frame < 0) {
      this.scene = { tree: this.arrangement.tree, icicle, zoom: ROOT };
      return;
    }
    const { callees, callers } = pivot(this.arrangement.tree, frame);
    this.scene = { tree: callees, callers, icicle, zoom: ROOT };
  }

  private show(follow: boolean): void {
    const { frames, scene, found, selected } = this;
    const { palette } = this.colouring;
    // Before the graph, which looks at the place that is left for it.
    const recursion = this.arrangement.merged === NONE ? undefined : this.arrangement.merged === ALL ? "" : this.frames.name[this.arrangement.merged];
    this.crumb.show(this.calls < 0 ? undefined : this.frames.name[this.calls], recursion, percent(scene.tree.total[0], this.arrangement.tree.total[0]));
    this.graph.show({ frames, palette, scene, found, selected, swapped: this.arrangement.swapped }, follow);
    const isReset = scene.zoom.box === 0 && this.calls < 0 && this.arrangement.merged === NONE && !this.query;
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
    this.arrange(this.arrangement.heavy, NONE);
    this.enter(-1, this.scene.icicle);
    this.selected = undefined;
    this.look();
    this.show(true);
    this.remember(true);
  }

  private reset(): void {
    this.arrange(this.arrangement.heavy, NONE);
    this.enter(-1, this.scene.icicle);
    this.query = undefined;
    this.selected = undefined;
    this.toolbar.set(undefined);
    this.look();
    this.show(true);
    this.remember(true);
  }

  /** Takes on an order of boxes, and which recursion is put together; every scene made before is of another tree then. */
  private arrange(heavy: boolean, merged: number): void {
    this.toolbar.look(this.arrangement.orderOf(heavy), this.colouring.byFile);
    if (this.arrangement.arrange(heavy, merged)) this.calls = -1;
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
    else if (this.arrangement.given.times) this.embedding.inTime?.(false);
    else this.rearrange(order === "weight", this.arrangement.merged);
  }

  /** Goes through the orders that there are. */
  private nextOrder(): void {
    if (this.arrangement.given.times) this.reorder("name");
    else if (!this.arrangement.heavy) this.reorder("weight");
    else if (this.embedding.inTime) this.reorder("time");
    else this.reorder("name");
  }

  private mergeRecursion(merged: number): void {
    this.rearrange(this.arrangement.heavy, this.arrangement.merged === merged ? NONE : merged);
  }

  private paint(byFile: boolean): void {
    this.colouring.byFile = byFile;
    this.toolbar.look(this.arrangement.given.times ? "time" : this.arrangement.heavy ? "weight" : "name", byFile);
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
    this.arrangement.lookAt(swapped, all);
    this.details.swapped = swapped;
    this.calls = -1;
    this.colouring.all = this.arrangement.all;
    this.toolbar.diff(swapped, this.arrangement.all);
  }

  private swap(): void {
    this.turn(!this.arrangement.swapped, this.arrangement.all);
  }

  private widen(): void {
    this.turn(this.arrangement.swapped, !this.arrangement.all);
  }

  private turn(swapped: boolean, all: boolean): void {
    if (!this.facts.diff) return;
    const { calls, scene } = this;
    this.lookAt(swapped, all);
    this.colouring.dress(this.themes.current);
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
      this.found = find(this.arrangement.tree, matching(this.frames, this.query));
    } catch {
      this.toolbar.wrong("not a regular expression");
      return false;
    }
    const whole = this.arrangement.tree.total[0];
    const { zoom } = this.scene;
    const tree = treeOf(this.scene, zoom.callers);
    const zoomed = { weight: find(tree, this.found.frames, zoom.box).weight, whole: tree.total[zoom.box] };
    const isZoomed = zoomed.whole !== whole;
    this.toolbar.matched({ weight: this.found.weight, whole, isPart: this.leftOut > 0, ...(isZoomed ? { zoomed } : {}) });
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
    const { swapped, tree: arranged } = this.arrangement;
    this.tooltip.show(event.clientX, event.clientY, this.frames.name[tree.frame[place.box]], boxTip(tree, place.box, this.facts, arranged.total[0], swapped));
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
      recursion: isRecursive(this.arrangement.given, frame) ? () => this.mergeRecursion(frame) : undefined,
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
      m: () => this.paint(!this.colouring.byFile),
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

  private recolour(): void {
    this.colouring.dress(this.themes.current);
    this.show(false);
  }

  private print(on: boolean): void {
    if (on) this.colouring.dressForPaper();
    else this.colouring.dress(this.themes.current);
    this.show(false);
    this.graph.print(on);
  }
}
