// The course of a selection over time, on which a range is selected: by a drag, or by keys.

import type { StoreClient, StoredSelection } from "../api/store_client";
import { date, duration, weight } from "../model/format";
import { shifted, takersOf, unitOf, type Range } from "../model/store_state";
import { chart } from "../widgets/chart";
import { el } from "../widgets/dom";

const BARS = 180;
/** The shortest range, in milliseconds. */
const LEAST = 1000;

export class StoreStrip {
  readonly element = el("section", { class: "timeline store-strip", "aria-label": "Course over time" });

  constructor(private readonly select: (range: Range) => void) {}

  toggle(): void {
    this.element.classList.toggle("folded");
  }

  /** Shows the selection; false if there is nothing in it. */
  async show(client: StoreClient, selection: StoredSelection, signal: AbortSignal): Promise<boolean> {
    const { range, type } = selection;
    const step = Math.max(1, Math.ceil((range.until - range.from) / BARS / 1000));
    const series = await client.series(selection, step, []);
    if (signal.aborted) return true;
    const points = series.flatMap((one) => one.points);
    const most = points.reduce((most, { value }) => Math.max(most, value), 0);
    const picture = chart(points, {
      ...range,
      step: step * 1000,
      label: "Course over time; drag to select a range, arrow keys move it, + and − narrow and widen it",
      select: (from, until) => this.select({ from, until }),
    });
    picture.tabIndex = 0;
    picture.addEventListener("keydown", (event) => this.key(event, range));
    const peak = unitOf(type) === "ns" ? `${Number((most / (step * 1e9)).toPrecision(2))} ${takersOf(type)}` : `${weight(most, unitOf(type))} in ${duration(step * 1e9)}`;
    const axis = el("div", { class: "range" }, el("span", {}, date(range.from)), el("span", {}, points.length > 0 ? `at most ${peak}` : ""), el("span", {}, date(range.until)));
    const hadFocus = this.element.contains(document.activeElement);
    this.element.replaceChildren(picture, axis);
    if (hadFocus) picture.focus();
    this.element.hidden = points.length === 0;
    return points.length > 0;
  }

  private key(event: KeyboardEvent, range: Range): void {
    const length = range.until - range.from;
    const by = (part: number) => ({ from: range.from - part, until: range.until + part });
    switch (event.key) {
      case "ArrowLeft":
        this.select(shifted(range, length / 4));
        break;
      case "ArrowRight":
        this.select(shifted(range, -length / 4));
        break;
      case "+":
        this.select(by(-Math.max(0, Math.min(length / 4, (length - LEAST) / 2))));
        break;
      case "-":
        this.select(by(length / 2));
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
