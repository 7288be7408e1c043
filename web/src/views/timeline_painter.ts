// How rows of the timeline look: time on the processor, blocked and waiting for one stand on each other; events are ticks.
// The colours differ in lightness too, and events in shape, so that they can be told apart without their hue.

import type { TimelineAnswer, TimelineEntry } from "../api/types";
import { el } from "../widgets/dom";
import type { Theme } from "../widgets/theme";

export interface ThreadRow {
  readonly entries: readonly TimelineEntry[];
}

type Kind = "cpu" | "blocked" | "queued" | "event";

const KINDS: readonly Kind[] = ["cpu", "queued", "blocked", "event"];
const NAMES: Readonly<Record<Kind, string>> = { cpu: "on CPU", queued: "run-queue wait", blocked: "off CPU", event: "event" };
const COLOURS: Readonly<Record<Theme, Readonly<Record<Kind | "line" | "background", string>>>> = {
  light: { cpu: "#2a6fb8", queued: "#d9772b", blocked: "#c9ced8", event: "#157a5b", line: "#e6e2d9", background: "#fbfaf8" },
  dark: { cpu: "#6aa9ea", queued: "#f0a057", blocked: "#454b57", event: "#5cc9a3", line: "#2a2e35", background: "#17191d" },
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

  draw(threads: readonly ThreadRow[], answer: TimelineAnswer, { theme, width, rowHeight }: Look): void {
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
    threads.forEach((thread, index) => {
      const bottom = (index + 1) * rowHeight - 1;
      context.fillStyle = colours.line;
      context.fillRect(0, bottom, width, 1);
      this.row(thread, answer, { bottom, height: rowHeight - 3, width, colours });
    });
    this.explain(threads, theme);
  }

  private row(
    thread: ThreadRow,
    answer: TimelineAnswer,
    at: { bottom: number; height: number; width: number; colours: Readonly<Record<Kind, string>> },
  ): void {
    const { context } = this;
    const bins = thread.entries[0].bins.length;
    // The last bin may reach beyond the end of the recording.
    const step = (at.width * answer.bin_ns) / answer.duration_ns;
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
            context.fillRect(bin * step, at.bottom - at.height, Math.max(1, step / 2), tall);
            return;
          }
          const low = stacked[bin];
          const high = Math.min(1, low + share);
          stacked[bin] = high;
          const tall = Math.max(1, (high - low) * at.height);
          context.fillRect(bin * step, at.bottom - low * at.height - tall, Math.max(1, step + 0.3), tall);
        });
      }
    }
  }

  private explain(threads: readonly ThreadRow[], theme: Theme): void {
    const present = new Set(threads.flatMap(({ entries }) => entries.map(({ event }) => kindOf(event))));
    const events = [...new Set(threads.flatMap(({ entries }) => entries.map(({ event }) => event)))].filter((event) => kindOf(event) === "event");
    const items = KINDS.filter((kind) => present.has(kind)).map((kind) => {
      const swatch = el("span", { class: `swatch ${kind}` });
      swatch.style.backgroundColor = COLOURS[theme][kind];
      return el("span", {}, swatch, kind === "event" ? events.join(", ") : NAMES[kind]);
    });
    this.legend.replaceChildren(...items);
  }
}
