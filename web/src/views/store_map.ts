// A heat map of a selection: time from left to right, a row for each value of a label, a stronger colour where more was spent. A press on a cell selects
// its time and its value.

import type { Point, StoreClient, StoredSelection } from "../api/store_client";
import { date, percent, weight } from "../model/format";
import { unitOf } from "../model/store_state";
import { button, el } from "../widgets/dom";
import { Tooltip } from "../widgets/tooltip";

const COLUMNS = 120;
const ROWS = 40;
const ROW = 22;

interface Row {
  readonly name: string;
  readonly points: readonly Point[];
  readonly sum: number;
}

export interface MapEvents {
  label(name: string): void;
  value(label: string, value: string): void;
  cell(label: string, value: string, from: number, until: number): void;
}

export async function storeMap(host: HTMLElement, client: StoreClient, selection: StoredSelection, chosen: string, events: MapEvents, signal: AbortSignal): Promise<void> {
  const labels = (await client.labels(selection.selector, selection.range)).filter((name) => !name.startsWith("__"));
  const isOneService = selection.selector.includes("service_name=");
  const known = labels.filter((name) => !isOneService || name !== "service_name");
  const label = known.includes(chosen) ? chosen : (known.find((name) => name === (isOneService ? "thread" : "service_name")) ?? known[0] ?? "service_name");
  const { from, until } = selection.range;
  const step = Math.max(1, Math.ceil((until - from) / COLUMNS / 1000));
  const series = await client.series(selection, step, [label]);
  const all: Row[] = series.map(({ labels: of, points }) => ({ name: of[label] ?? "", points, sum: points.reduce((sum, point) => sum + point.value, 0) }));
  const rows = all.sort((a, b) => b.sum - a.sum).slice(0, ROWS);
  const picker = el("select", { "aria-label": "Rows by" }, ...known.map((name) => el("option", { value: name }, name)));
  picker.value = label;
  picker.addEventListener("change", () => events.label(picker.value));
  host.append(el("div", { class: "tools" }, el("label", {}, "a row for each value of ", picker), el("span", { class: "hint" }, "The stronger the colour, the more. Press a cell for its time and value.")));
  if (rows.length === 0) {
    host.append(el("p", { class: "empty" }, "No profiles in this range; choose a longer one."));
    return;
  }
  const names = el("div", { class: "map-names" });
  for (const { name } of rows) names.append(button(name === "" ? "(none)" : name, `Only ${label} ${name}`, () => events.value(label, name), "thread"));
  const whole = all.reduce((sum, row) => sum + row.sum, 0);
  const canvas = cells(rows, { ...selection, step: step * 1000, whole, label }, events, signal);
  const axis = el("div", { class: "range" }, el("span", {}, date(from)), el("span", {}, date(until)));
  host.append(el("div", { class: "map" }, names, el("div", { class: "map-cells" }, canvas)), axis);
  host.append(el("p", { class: "hint" }, "Profiles of a store keep the time of the whole profile, not of each sample: for a timeline of threads, or what runs at one offset of each second, open a recording."));
  if (all.length > rows.length) host.append(el("p", { class: "hint" }, `${all.length - rows.length} values with less are left out.`));
}

interface Grid extends StoredSelection {
  /** Length of a cell in milliseconds. */
  readonly step: number;
  readonly whole: number;
  readonly label: string;
}

function cells(rows: readonly Row[], grid: Grid, events: MapEvents, signal: AbortSignal): HTMLCanvasElement {
  const { from, until } = grid.range;
  const columns = Math.max(1, Math.ceil((until - from) / grid.step));
  const values = rows.map(({ points }) => {
    const line = new Array<number>(columns).fill(0);
    // A profile may last longer than the range.
    for (const { time, value } of points.filter(({ time }) => time < until)) line[Math.max(0, Math.min(columns - 1, Math.floor((time - from) / grid.step)))] += value;
    return line;
  });
  const most = Math.max(1, ...values.flat());
  const canvas = el("canvas", { role: "img", "aria-label": `Heat map by ${grid.label} over time; the rows' names are buttons` });
  const paint = () => {
    const [width, height] = [canvas.clientWidth, rows.length * ROW];
    if (width === 0) return;
    const scale = devicePixelRatio;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(scale, scale);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    const wide = width / columns;
    values.forEach((line, row) =>
      line.forEach((value, column) => {
        if (value <= 0) return;
        // Small values stay visible: the eye takes areas by their square root.
        context.globalAlpha = 0.08 + 0.92 * Math.sqrt(value / most);
        context.fillRect(column * wide, row * ROW + 1, Math.max(1, wide - 0.5), ROW - 2);
      }),
    );
  };
  const watcher = new ResizeObserver(paint);
  watcher.observe(canvas);
  const themes = new MutationObserver(paint);
  themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const tooltip = new Tooltip();
  signal.addEventListener("abort", () => [watcher.disconnect(), themes.disconnect(), tooltip.remove()]);
  const at = (event: MouseEvent) => {
    const bounds = canvas.getBoundingClientRect();
    const column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - bounds.left) / bounds.width) * columns)));
    const row = Math.min(rows.length - 1, Math.max(0, Math.floor((event.clientY - bounds.top) / ROW)));
    return { row, column, begin: from + column * grid.step };
  };
  canvas.addEventListener("pointermove", (event) => {
    const { row, column, begin } = at(event);
    const value = values[row][column];
    tooltip.show(event.clientX, event.clientY, `${rows[row].name}, ${date(begin)}`, `${weight(value, unitOf(grid.type))}, ${percent(value, grid.whole)} of all`);
  });
  canvas.addEventListener("pointerleave", () => tooltip.hide());
  canvas.addEventListener("click", (event) => {
    const { row, begin } = at(event);
    events.cell(grid.label, rows[row].name, begin, Math.min(until, begin + grid.step));
  });
  return canvas;
}
