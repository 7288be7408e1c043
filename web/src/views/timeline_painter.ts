// How rows of the timeline look: time on the processor, blocked and waiting for one stand on each other; events are ticks.
// The colours differ in lightness too, and events in shape, so that they can be told apart without their hue.

import type { TimelineAnswer, TimelineEntry } from "../api/types";
import { brief } from "../model/names";
import { el } from "../widgets/dom";
import type { Window } from "../model/window";
import type { Theme } from "../widgets/theme";

export interface ThreadRow {
  readonly entries: readonly TimelineEntry[];
}

/** When a function ran: its weights by thread. */
export interface TimelineMark {
  readonly name: string;
  /** The answer that the rows are of. */
  readonly answer: TimelineAnswer;
  readonly rows: ReadonlyMap<string, readonly TimelineEntry[]>;
}

export const threadKey = ({ pid, tid, comm }: TimelineEntry): string => `${pid} ${tid} ${comm}`;

type Kind = "cpu" | "blocked" | "queued" | "event";

const KINDS: readonly Kind[] = ["cpu", "queued", "blocked", "event"];
const NAMES: Readonly<Record<Kind, string>> = { cpu: "on CPU", queued: "run-queue wait", blocked: "off CPU", event: "event" };
const COLOURS: Readonly<Record<Theme, Readonly<Record<Kind | "line" | "background" | "mark", string>>>> = {
  light: { cpu: "#2a6fb8", queued: "#d9772b", blocked: "#c9ced8", event: "#157a5b", line: "#e6e2d9", background: "#fbfaf8", mark: "#f2a93b" },
  dark: { cpu: "#6aa9ea", queued: "#f0a057", blocked: "#454b57", event: "#5cc9a3", line: "#2a2e35", background: "#17191d", mark: "#ffd36b" },
};
const CLOCKS = ["cpu-clock", "task-clock"];

const kindOf = (event: string): Kind => {
  if (event === "off-cpu") return "blocked";
  if (event === "run-queue") return "queued";
  return CLOCKS.includes(event.split(":")[0]) ? "cpu" : "event";
};

export interface Look {
  readonly theme: Theme;
  readonly width: number;
  readonly rowHeight: number;
  /** What part of the recording is shown. */
  readonly shown: Window;
  /** Where lines go down, in pixels. */
  readonly ticks: readonly number[];
  readonly mark: TimelineMark | undefined;
}

/** Pixels of a bin, and where the first one begins. */
function scaleOf({ from_ns, bin_ns }: TimelineAnswer, { from, to }: Window, width: number): { step: number; first: number } {
  const scale = width / (to - from);
  return { step: bin_ns * scale, first: (from_ns - from) * scale };
}

export class TimelinePainter {
  readonly legend = el("span", { class: "timeline-legend" });
  private readonly context: CanvasRenderingContext2D;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
  }

  static isTime(event: string): boolean {
    return kindOf(event) !== "event";
  }

  draw(threads: readonly ThreadRow[], answer: TimelineAnswer, { theme, width, rowHeight, shown, ticks, mark }: Look): void {
    const scale = Math.min(3, devicePixelRatio || 1);
    const height = Math.max(1, threads.length * rowHeight);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const { context } = this;
    const colours = COLOURS[theme];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = colours.background;
    context.fillRect(0, 0, width, height);
    context.fillStyle = colours.line;
    for (const tick of ticks) context.fillRect(Math.round(tick), 0, 1, height);
    threads.forEach((thread, index) => {
      const bottom = (index + 1) * rowHeight - 1;
      context.fillStyle = colours.line;
      context.fillRect(0, bottom, width, 1);
      const place = { bottom, height: rowHeight - 3, colours, ...scaleOf(answer, shown, width) };
      this.row(thread, answer, place);
      const { rows, answer: of } = mark ?? {};
      if (rows && of) this.marked(rows.get(threadKey(thread.entries[0])) ?? [], of, { ...place, ...scaleOf(of, shown, width) });
    });
    this.explain(threads, theme, mark);
  }

  private row(
    thread: ThreadRow,
    answer: TimelineAnswer,
    at: { bottom: number; height: number; step: number; first: number; colours: Readonly<Record<Kind, string>> },
  ): void {
    const { context } = this;
    const bins = thread.entries[0].bins.length;
    // The last bin may reach beyond the end of the recording.
    const { step, first } = at;
    const stacked = new Float64Array(bins);
    for (const kind of KINDS) {
      context.fillStyle = at.colours[kind];
      for (const { event, bins: values } of thread.entries) {
        if (kindOf(event) !== kind) continue;
        const full = kind === "event" ? values.reduce((most, value) => Math.max(most, value), 1) : answer.bin_ns;
        values.forEach((value, bin) => {
          if (value === 0) return;
          const share = Math.min(1, value / full);
          if (kind === "event") {
            const tall = 3 + 5 * share;
            context.fillRect(Math.floor(first + bin * step), at.bottom - at.height, Math.max(1, Math.floor(step / 2)), tall);
            return;
          }
          const low = stacked[bin];
          const high = Math.min(1, low + share);
          stacked[bin] = high;
          // One sample among thousands is to be seen, too.
          const tall = Math.max(low === 0 ? 3 : 1, (high - low) * at.height);
          const left = Math.floor(first + bin * step);
          context.fillRect(left, at.bottom - low * at.height - tall, Math.max(1, Math.floor(first + (bin + 1) * step) - left), tall);
        });
      }
    }
  }

  /** When a function ran, over what its thread did. */
  private marked(
    entries: readonly TimelineEntry[],
    answer: TimelineAnswer,
    at: { bottom: number; height: number; step: number; first: number; colours: Readonly<Record<"mark", string>> },
  ): void {
    const { context } = this;
    const { step, first } = at;
    context.fillStyle = at.colours.mark;
    for (const { event, bins } of entries) {
      const isTime = TimelinePainter.isTime(event);
      bins.forEach((value, bin) => {
        if (value === 0) return;
        const tall = Math.max(3, (isTime ? Math.min(1, value / answer.bin_ns) : 0.3) * at.height);
        const left = Math.floor(first + bin * step);
        context.fillRect(left, at.bottom - tall, Math.max(1, Math.floor(first + (bin + 1) * step) - left), tall);
      });
    }
  }

  private explain(threads: readonly ThreadRow[], theme: Theme, mark: TimelineMark | undefined): void {
    const present = new Set(threads.flatMap(({ entries }) => entries.map(({ event }) => kindOf(event))));
    const events = [...new Set(threads.flatMap(({ entries }) => entries.map(({ event }) => event)))].filter((event) => kindOf(event) === "event");
    const items = KINDS.filter((kind) => present.has(kind)).map((kind) => {
      const swatch = el("span", { class: `swatch ${kind}` });
      swatch.style.backgroundColor = COLOURS[theme][kind];
      return el("span", {}, swatch, kind === "event" ? events.join(", ") : NAMES[kind]);
    });
    if (mark) {
      const swatch = el("span", { class: "swatch" });
      swatch.style.backgroundColor = COLOURS[theme].mark;
      items.push(el("span", { title: mark.name, class: "marked" }, swatch, el("span", {}, brief(mark.name))));
    }
    this.legend.replaceChildren(...items);
  }
}
