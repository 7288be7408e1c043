// Values over time as bars: a small one beside a name, and a large one on which a range is selected.

import { el } from "./dom";
import { printable } from "./printable";

export interface Bar {
  readonly time: number;
  readonly value: number;
}

const NAMESPACE = "http://www.w3.org/2000/svg";

function shape(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, printable(String(value)));
  return element;
}

export interface ChartOptions {
  readonly from: number;
  readonly until: number;
  /** Length of a bar, in the unit of times. */
  readonly step: number;
  readonly label: string;
  select?(from: number, until: number): void;
}

export function chart(bars: readonly Bar[], options: ChartOptions): HTMLElement {
  const { from, until, step, label, select } = options;
  const length = Math.max(1, until - from);
  const most = bars.reduce((most, bar) => Math.max(most, bar.value), 0) || 1;
  const picture = shape("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": label });
  for (const bar of bars) {
    const [x, tall] = [(1000 * (bar.time - from)) / length, Math.max(1, (100 * bar.value) / most)];
    picture.append(shape("rect", { x, y: 100 - tall, width: Math.max(2, (1000 * step) / length - 1), height: tall }));
  }
  const host = el("div", { class: select ? "chart large" : "chart" });
  host.append(picture);
  if (select) brush(host, (a, b) => select(from + a * length, from + b * length));
  return host;
}

/** Calls `select` with the two ends of a drag, as fractions of the width. */
function brush(host: HTMLElement, select: (from: number, until: number) => void): void {
  const mark = el("div", { class: "brush", hidden: true });
  host.append(mark);
  let start: number | undefined;
  const at = (event: PointerEvent) => {
    const bounds = host.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - bounds.left) / bounds.width));
  };
  host.addEventListener("pointerdown", (event) => {
    start = at(event);
    host.setPointerCapture(event.pointerId);
  });
  host.addEventListener("pointermove", (event) => {
    if (start === undefined) return;
    const [left, right] = [Math.min(start, at(event)), Math.max(start, at(event))];
    mark.hidden = false;
    mark.style.left = `${100 * left}%`;
    mark.style.width = `${100 * (right - left)}%`;
  });
  host.addEventListener("pointerup", (event) => {
    const [a, b] = [start ?? 0, at(event)];
    start = undefined;
    mark.hidden = true;
    if (Math.abs(a - b) > 0.005) select(Math.min(a, b), Math.max(a, b));
  });
}
