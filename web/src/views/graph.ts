// The canvas: draws the rows that are in view, and says which box the pointer is at. A picture of any height costs one
// screen: the canvas stays, a spacer behind it gives the scroll bar its length.

import { visible, type Span } from "../model/layout";
import { rowCount, depthAt, placeAt, rowOf, spanFor, treeOf, type Place, type Scene } from "../model/scene";
import { Painter } from "./painter";
import type { Frames } from "../model/decode";
import type { Found } from "../model/search";
import type { Palette } from "../widgets/palette";
import { el } from "../widgets/dom";

const ZOOM_MS = 160;

export interface GraphEvents {
  /** The mouse is at a box, or at none. */
  hover(place: Place | undefined, event: PointerEvent): void;
  /** A click or tap; `isTouch` if a finger did it. */
  press(place: Place, isTouch: boolean): void;
  menu(place: Place, x: number, y: number): void;
  key(event: KeyboardEvent): void;
}

export interface Picture {
  readonly scene: Scene;
  readonly frames: Frames;
  readonly palette: Palette;
  readonly found: Found | undefined;
  readonly selected: Place | undefined;
  readonly hovered?: Place | undefined;
  /** Of a differential picture: whether the sides are exchanged. */
  readonly swapped: boolean;
}

export class Graph {
  readonly rowHeight: number;
  private readonly canvas = el("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label": "Flame graph. Arrow keys move between boxes, Enter zooms, Escape resets, question mark lists all keys.",
  });
  private readonly spacer = el("div", { class: "spacer" }, this.canvas);
  private readonly painter: Painter;
  private picture: Picture | undefined;
  private hovered: Place | undefined;
  private frame = 0;
  private glide: { from: Span; callers: boolean; start: number } | undefined;
  private printing = false;
  /** Height of the view when it was last looked at. */
  private height = 0;
  /** Size of what was drawn last. */
  private drawn = { width: 0, height: 0 };

  constructor(
    private readonly host: HTMLElement,
    private readonly events: GraphEvents,
  ) {
    const isCoarse = matchMedia("(pointer: coarse)").matches;
    this.rowHeight = isCoarse ? 27 : 20;
    this.painter = new Painter(this.canvas, this.rowHeight, isCoarse ? 13 : 12);
    host.append(this.spacer);
    host.addEventListener("scroll", () => this.schedule());
    new ResizeObserver(() => {
      // What stands on the floor stays there.
      if (this.picture && !this.picture.scene.icicle) host.scrollTop += this.height - host.clientHeight;
      this.height = host.clientHeight;
      // An observer also speaks when it begins to look.
      if (this.drawn.width !== this.width || this.drawn.height !== this.height) this.schedule();
    }).observe(host);
    this.listen();
  }

  /** Pixels across. */
  get width(): number {
    return this.host.clientWidth;
  }

  focus(): void {
    this.canvas.focus({ preventScroll: true });
  }

  /** Shows a picture. With `follow` it scrolls to the zoomed box, and glides there if the window moved. */
  show(picture: Picture, follow: boolean): void {
    const before = this.picture;
    const { scene } = picture;
    if (follow && before && before.scene.tree === scene.tree && before.scene.icicle === scene.icicle) {
      const { callers } = before.scene.zoom.callers === scene.zoom.callers ? scene.zoom : before.scene.zoom;
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.glide = calm ? undefined : { from: this.span(callers), callers, start: performance.now() };
    }
    this.picture = picture;
    const full = rowCount({ ...scene, zoom: { callers: false, box: 0 } });
    this.host.style.setProperty("--content", `${full * this.rowHeight}px`);
    this.spacer.style.height = `${rowCount(scene) * this.rowHeight}px`;
    if (follow) this.scrollToZoom(scene);
    this.height = this.host.clientHeight;
    this.schedule();
  }

  /** Scrolls as little as needed for the box to be in view. */
  reveal(place: Place): void {
    if (!this.picture) return;
    const { scene } = this.picture;
    const top = rowOf(scene, place.callers, treeOf(scene, place.callers).depth[place.box]) * this.rowHeight;
    const view = this.host.clientHeight;
    if (top < this.host.scrollTop) this.host.scrollTop = top - this.rowHeight;
    else if (top + this.rowHeight > this.host.scrollTop + view) this.host.scrollTop = top + 2 * this.rowHeight - view;
  }

  /** Draws everything, not only what is in view, for as long as the printer looks. */
  print(on: boolean): void {
    this.printing = on;
    this.draw();
  }

  private scrollToZoom(scene: Scene): void {
    const depth = treeOf(scene, scene.zoom.callers).depth[scene.zoom.box];
    const row = rowOf(scene, scene.zoom.callers, depth);
    const growsUp = scene.icicle === scene.zoom.callers;
    // Callers stay in view, if there are many those nearest.
    const kept = Math.max(3, Math.floor((0.35 * this.host.clientHeight) / this.rowHeight)) * this.rowHeight;
    const top = row * this.rowHeight;
    this.host.scrollTop = growsUp ? top + this.rowHeight + kept - this.host.clientHeight : top - kept;
  }

  private schedule(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  /** The window of one side, on its way if a zoom is under way. */
  private span(callers: boolean): Span {
    if (!this.picture) return { from: 0, to: 1 };
    const goal = spanFor(this.picture.scene, callers);
    const { glide } = this;
    if (!glide || glide.callers !== callers) return goal;
    const time = Math.min(1, (performance.now() - glide.start) / ZOOM_MS);
    if (time >= 1) {
      this.glide = undefined;
      return goal;
    }
    const eased = 1 - (1 - time) ** 3;
    const blend = (from: number, to: number) => from + (to - from) * eased;
    return { from: blend(glide.from.from, goal.from), to: blend(glide.from.to, goal.to) };
  }

  private draw(): void {
    if (!this.picture) return;
    const { scene } = this.picture;
    const rows = rowCount(scene);
    const height = this.printing ? Math.min(rows * this.rowHeight, 12000) : Math.max(1, this.host.clientHeight);
    const offset = this.printing ? 0 : this.host.scrollTop;
    // A picture lower than its place stands on the floor, or hangs from the ceiling.
    const slack = scene.icicle ? 0 : Math.max(0, height - rows * this.rowHeight);
    const first = Math.max(0, Math.floor((offset - slack) / this.rowHeight));
    const last = Math.min(rows - 1, Math.floor((offset - slack + height) / this.rowHeight));
    const { width } = this;
    this.drawn = { width, height: this.host.clientHeight };
    this.painter.begin({ ...this.picture, hovered: this.hovered }, width, height, slack - offset, first, last);
    const spans = { callees: this.span(false), callers: this.span(true) };
    for (let row = first; row <= last; row++) {
      const { callers, depth } = depthAt(scene, row);
      visible(treeOf(scene, callers), depth, callers ? spans.callers : spans.callees, width, (box, left, right) => this.painter.box(row, callers, box, left, right));
    }
    this.painter.finish();
    if (this.glide) this.schedule();
    performance.clearMarks("plumb-drawn");
    performance.mark("plumb-drawn");
  }

  private at(event: MouseEvent): Place | undefined {
    if (!this.picture) return undefined;
    const bounds = this.canvas.getBoundingClientRect();
    const { scene } = this.picture;
    const rows = rowCount(scene);
    const slack = scene.icicle ? 0 : Math.max(0, this.host.clientHeight - rows * this.rowHeight);
    const row = Math.floor((event.clientY - bounds.top + this.host.scrollTop - slack) / this.rowHeight);
    return row < 0 || row >= rows ? undefined : placeAt(scene, row, (event.clientX - bounds.left) / bounds.width);
  }

  private listen(): void {
    let touch = false;
    this.canvas.addEventListener("pointerdown", (event) => (touch = event.pointerType === "touch"));
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") this.hover(this.at(event), event);
    });
    this.canvas.addEventListener("pointerleave", (event) => this.hover(undefined, event));
    this.canvas.addEventListener("click", (event) => {
      const place = this.at(event);
      if (place) this.events.press(place, touch);
    });
    this.canvas.addEventListener("contextmenu", (event) => {
      const place = this.at(event);
      if (!place) return;
      event.preventDefault();
      this.events.menu(place, event.clientX, event.clientY);
    });
    this.canvas.addEventListener("keydown", (event) => this.events.key(event));
    for (const change of ["focus", "blur"]) this.canvas.addEventListener(change, () => this.schedule());
  }

  private hover(place: Place | undefined, event: PointerEvent): void {
    if (place?.box !== this.hovered?.box || place?.callers !== this.hovered?.callers) this.schedule();
    this.hovered = place;
    this.canvas.style.cursor = place ? "pointer" : "default";
    this.events.hover(place, event);
  }
}
