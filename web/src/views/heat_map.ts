// The heat map: when within each second a program runs, or how long waits took over time. A selection opens its flame graph.
//
// The view's own word is `latency` for the lengths of waits.

import type { HeatmapAnswer } from "../api/types";
import { duration, percent, weight } from "../model/format";
import { cellsBetween, rangeOf, rowsOf, termOf, timeOf, weightIn, type Cells } from "../model/heat";
import { intervalOf, partOf } from "../model/selection";
import { ticksOf } from "../model/ticks";
import { button, el, setText } from "../widgets/dom";
import { Tooltip } from "../widgets/tooltip";
import { drawHeat, scaleOf } from "./heat_painter";
import type { View, ViewContext } from "./view";

const COLUMNS = 600;
const DRAG_PX = 4;

export const heatMap: View = {
  id: "heat",
  title: "Heat map",
  async show(host, context) {
    const isLatency = context.detail === "latency";
    const map = await context.client.heatmap(isLatency ? "latency" : "offset", COLUMNS);
    if (isLatency || map.has_latency) host.append(choice(context, isLatency));
    const timed = map.columns.reduce((sum, column) => sum + column.reduce((a, b) => a + b, 0), 0);
    if (timed === 0) {
      host.append(el("p", { class: "empty" }, "Samples have no times of their own here: identical stacks were aggregated. Record with: plumb record --timeline"));
      return;
    }
    const picture = new HeatPicture(map, context, timed);
    host.append(picture.element);
    host.addEventListener("shown", () => picture.draw(), { once: true });
  },
};

function choice(context: ViewContext, isLatency: boolean): HTMLElement {
  const way = (text: string, title: string, detail: string, isOn: boolean) => {
    const one = button(text, title, () => context.go("heat", detail));
    one.setAttribute("aria-pressed", String(isOn));
    return one;
  };
  const buttons = [way("Offset in the second", "When within each second", "", !isLatency), way("Length of waits", "How long waits took", "latency", isLatency)];
  return el("div", { class: "tools" }, el("div", { class: "buttons" }, ...buttons));
}

class HeatPicture {
  private readonly canvas = el("canvas", { tabindex: "0", role: "application" });
  private readonly mark = el("div", { class: "heat-mark", hidden: true });
  private readonly area = el("div", { class: "heat-area" }, this.canvas, this.mark);
  private readonly down = el("div", { class: "heat-down", "aria-hidden": "true" });
  private readonly axis = el("div", { class: "axis", "aria-hidden": "true" });
  private readonly spoken = el("p", { class: "hint", role: "status" });
  private readonly tooltip = new Tooltip();
  private readonly scale = el("span", { class: "heat-scale" });
  /** Where the keys are: a corner, and the one that stays. */
  private at: [number, number] = [0, 0];
  private anchor: [number, number] = [0, 0];
  readonly element: HTMLElement;

  constructor(
    private readonly map: HeatmapAnswer,
    private readonly context: ViewContext,
    /** Weight of all cells. */
    private readonly whole: number,
  ) {
    const what = map.rows_from_ns ? "waits by time and length" : "time by second and offset in it";
    this.canvas.setAttribute("aria-label", `Heat map: ${what}. Arrow keys move, with Shift they widen the selection, Enter opens its flame graph.`);
    const lead = map.rows_from_ns
      ? "Each column is a moment, each row a length of waits. Drag to select a time."
      : `Each column is a second, from its begin at the bottom to its end at the top. What runs every second at one offset is a line.${map.has_latency ? " Waits count where they begin." : ""} Drag to select.`;
    this.element = el(
      "div",
      { class: "heat" },
      el("div", { class: "heat-head" }, el("p", { class: "hint" }, context.isFile ? lead.replace(/ Drag.*$/, "") : lead), this.scale),
      el("div", { class: "heat-rows" }, this.down, this.area),
      this.axis,
      this.spoken,
    );
    context.signal.addEventListener("abort", () => this.tooltip.remove());
    context.themes.listen(() => this.draw(), context.signal);
    new ResizeObserver(() => this.draw()).observe(this.area);
    this.listen();
    if (map.untimed) this.spoken.textContent = `${percent(map.untimed, this.whole + map.untimed)} of the time has no moment of its own and is not here.`;
  }

  draw(): void {
    const width = this.area.clientWidth;
    if (width === 0) return;
    const { map } = this;
    const theme = this.context.themes.current;
    drawHeat(this.canvas, map, theme, width, this.area.clientHeight);
    this.scale.replaceChildren(...scaleOf(map, theme));
    this.label();
    const selected = this.selected();
    this.place(selected);
  }

  private label(): void {
    const { map } = this;
    const rows = rowsOf(map);
    const mark = (text: string, row: number) => {
      const label = el("span", {}, text);
      label.style.bottom = `${(100 * row) / rows}%`;
      return label;
    };
    const lengths = map.rows_from_ns;
    const step = Math.max(1, Math.round(rows / 6));
    this.down.replaceChildren(
      ...(lengths
        ? lengths.flatMap((ns, row) => (row % step === 0 ? [mark(duration(ns), row)] : []))
        : [0, 0.25, 0.5, 0.75].map((part) => mark(part === 0 ? "0" : `${part} s`, part * rows))),
    );
    const span = map.columns.length * map.column_ns;
    // Seconds of the recording, whose begin may lie within the first column.
    const shown = ticksOf(span, Math.max(2, Math.floor(this.area.clientWidth / 110)));
    this.axis.replaceChildren(
      ...shown.flatMap(({ ns, text }) => {
        const at = (100 * (ns - map.first_ns)) / span;
        if (at < 0 || at > 97) return [];
        const label = el("span", {}, text);
        label.style.left = `${at}%`;
        return [label];
      }),
    );
  }

  /** The cells that are selected already, if they are in the map. */
  private selected(): Cells | undefined {
    const { map, context } = this;
    const interval = intervalOf(context.terms, context.about.duration_ns);
    const part = partOf(context.terms);
    if (!interval && !part) return undefined;
    const column = (ns: number) => Math.floor((ns - map.first_ns) / map.column_ns);
    const { from, to } = interval ?? { from: 0, to: context.about.duration_ns };
    const rows = rowsOf(map);
    const [low, high] = map.rows_from_ns || !part ? [0, rows - 1] : [Math.round(part.from * rows), Math.round(part.to * rows) - 1];
    return cellsBetween(map, [column(from), low], [column(Math.max(from, to - 1)), high]);
  }

  private place(cells: Cells | undefined): void {
    this.mark.hidden = cells === undefined;
    if (!cells) return;
    const { map } = this;
    const [columns, rows] = [map.columns.length, rowsOf(map)];
    Object.assign(this.mark.style, {
      left: `${(100 * cells.column) / columns}%`,
      width: `${(100 * (cells.toColumn - cells.column + 1)) / columns}%`,
      bottom: `${(100 * cells.row) / rows}%`,
      height: `${(100 * (cells.toRow - cells.row + 1)) / rows}%`,
    });
  }

  private cellAt(event: PointerEvent): [number, number] {
    const bounds = this.area.getBoundingClientRect();
    const column = Math.floor(((event.clientX - bounds.left) / bounds.width) * this.map.columns.length);
    const row = Math.floor((1 - (event.clientY - bounds.top) / bounds.height) * rowsOf(this.map));
    return [column, row];
  }

  /** What a selection takes: of waits all lengths. */
  private between(a: [number, number], b: [number, number]): Cells {
    const cells = cellsBetween(this.map, a, b);
    return this.map.rows_from_ns ? { ...cells, row: 0, toRow: rowsOf(this.map) - 1 } : cells;
  }

  private said(cells: Cells): string {
    const time = timeOf(this.map, cells, this.context.about.duration_ns);
    const range = rangeOf(this.map, cells);
    const inWeight = weightIn(this.map, cells);
    const value = this.map.unit === "ns" ? weight(inWeight, "ns") : `${weight(inWeight, "")} ${this.map.unit}`;
    const where = this.map.rows_from_ns ? `waits of ${duration(range.from)} to ${duration(range.to)}` : `${duration(range.from)} to ${duration(range.to)} into the second`;
    return `${value} (${percent(inWeight, this.whole)}): ${duration(time.from)} to ${duration(time.to)}, ${where}`;
  }

  private open(cells: Cells): void {
    this.tooltip.hide();
    this.context.open("flame", termOf(this.map, cells, this.context.about.duration_ns));
  }

  private listen(): void {
    let start: { readonly cell: [number, number]; readonly x: number; readonly y: number } | undefined;
    const isDrag = (event: PointerEvent) => start !== undefined && Math.hypot(event.clientX - start.x, event.clientY - start.y) >= DRAG_PX;
    const { area, canvas, context } = this;
    area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || context.isFile) return;
      start = { cell: this.cellAt(event), x: event.clientX, y: event.clientY };
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event);
      const cells = start && isDrag(event) ? this.between(start.cell, cell) : cellsBetween(this.map, cell, cell);
      if (start && isDrag(event)) this.place(cells);
      const [what, where] = this.said(cells).split(": ");
      if (event.pointerType !== "touch") this.tooltip.show(event.clientX, event.clientY, what, where);
    });
    area.addEventListener("pointerup", (event) => {
      if (start && isDrag(event)) this.open(this.between(start.cell, this.cellAt(event)));
      start = undefined;
    });
    area.addEventListener("pointercancel", () => {
      start = undefined;
      this.place(this.selected());
    });
    area.addEventListener("pointerleave", () => this.tooltip.hide());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const step: Readonly<Record<string, readonly [number, number]>> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = step[event.key];
    const cells = () => this.between(this.anchor, this.at);
    if (move) {
      const to = cellsBetween(this.map, [this.at[0] + move[0], this.at[1] + move[1]], [this.at[0] + move[0], this.at[1] + move[1]]);
      this.at = [to.column, to.row];
      if (!event.shiftKey) this.anchor = this.at;
      this.place(cells());
      setText(this.spoken, this.said(cells()));
    } else if (event.key === "Enter" && !this.context.isFile) {
      this.open(cells());
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
