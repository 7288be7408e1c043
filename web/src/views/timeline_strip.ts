// The timeline: a row per thread with what it did when. Dragging selects an interval for all views; the wheel, two fingers and keys zoom.

import type { RecordingClient } from "../api/client";
import type { RecordingAbout, TimelineAnswer, TimelineEntry } from "../api/types";
import { count, duration, weight } from "../model/format";
import { exactly, intervalOf, intervalTerm, type Term } from "../model/selection";
import { ticksOf } from "../model/ticks";
import { around, isWhole, moved, scaled, timeAt, type Window } from "../model/window";
import { button, el, relabel, setText } from "../widgets/dom";
import type { Themes } from "../widgets/theme";
import { Tooltip } from "../widgets/tooltip";
import { listenForZoom } from "./timeline_zoom";
import { TimelinePainter, threadKey, type ThreadRow, type TimelineMark } from "./timeline_painter";

export interface TimelineEvents {
  select(term: Term): void;
  clear(): void;
}

/** Bins of the timeline: narrower ones would hold a handful of samples, and look as if threads stopped between them. */
const MOST_BINS = 600;
const SAMPLES_PER_BIN = 8;
/** Threads that get rows with each press on the button below them. */
const MORE_THREADS = 256;
/** How long a function has to stay selected until it is looked for, and the window unchanged until finer bins are asked for. */
const MARK_WAIT_MS = 120;
/** A shorter drag is a click. */
const DRAG_PX = 4;
/** A shorter recording has no times. */
const LEAST_NS = 1000;
const ROW = 22;
const FOLD = "Show or fold the timeline (T)";

const NOTHING: Window = { from: 0, to: 1 };

/** Bins, and the rows that they are drawn in. */
interface Drawn {
  readonly answer: TimelineAnswer;
  readonly threads: ThreadRow[];
}

export class TimelineStrip {
  readonly element = el("section", { class: "timeline", "aria-label": "Timeline" });
  private readonly summary = el("span", { class: "hint", role: "status" });
  private readonly labels = el("div", { class: "threads" });
  private readonly canvas = el("canvas", { tabindex: "0", role: "slider" });
  private readonly brush = el("div", { class: "brush", hidden: true });
  private readonly area = el("div", { class: "lanes" }, this.canvas, this.brush);
  private readonly rows = el("div", { class: "timeline-rows" }, this.labels, this.area);
  private readonly axis = el("div", { class: "axis", "aria-hidden": "true" });
  private readonly fold: HTMLButtonElement;
  private readonly tooltip = new Tooltip();
  private readonly painter: TimelinePainter;
  /** Of the whole recording. */
  private answer: TimelineAnswer | undefined;
  /** Of what is shown, in finer bins. */
  private fine: Drawn | undefined;
  private shownPart: Window = NOTHING;
  private readonly out = button("−", "Zoom out (X)", () => this.zoom(2), "small");
  private readonly in = button("+", "Zoom in, to the selected interval first (Z)", () => this.zoom(0.5), "small");
  private readonly all = button("Whole", "Show the whole recording", () => this.unzoom(), "small");
  private threads: ThreadRow[] = [];
  private interval: Window | undefined;
  private shown = "";
  private recording = "";
  private bins = MOST_BINS;
  private client: RecordingClient | undefined;
  private marked: TimelineMark | undefined;
  private wanted: string | undefined;
  /** Of the search for what is to be marked, 0 if there is none. */
  private timer = 0;
  /** Of the wait for finer bins. */
  private refining = 0;
  /** How many answers are awaited. */
  private underWay = 0;

  constructor(
    private readonly themes: Themes,
    /** A file holds one selection. */
    private readonly isFixed: boolean,
    private readonly events: TimelineEvents,
  ) {
    this.painter = new TimelinePainter(this.canvas);
    this.fold = button("▾ Timeline", FOLD, () => this.toggle(), "small");
    this.fold.setAttribute("aria-expanded", "true");
    this.element.append(el("div", { class: "timeline-head" }, this.fold, this.summary, el("span", { class: "zoom" }, this.out, this.in, this.all), this.painter.legend), this.rows, this.axis);
    themes.listen(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.area);
    this.listen();
  }

  toggle(): void {
    const isFolded = this.element.classList.toggle("folded");
    this.fold.setAttribute("aria-expanded", String(!isFolded));
    relabel(this.fold, isFolded ? "▸ Timeline" : "▾ Timeline", FOLD);
  }

  async show(client: RecordingClient, terms: readonly Term[], about: RecordingAbout, recording: string): Promise<void> {
    this.underWay++;
    this.markBusy();
    try {
      await this.ask(client, terms, about, recording);
    } finally {
      this.underWay--;
      this.markBusy();
    }
  }

  private async ask(client: RecordingClient, terms: readonly Term[], about: RecordingAbout, recording: string): Promise<void> {
    this.client = client;
    // Times and events choose nothing here.
    const key = JSON.stringify([recording, terms.filter(([word]) => word !== "time" && word !== "event")]);
    if (key !== this.shown || !this.answer) {
      this.bins = binsOf(about);
      this.marked = undefined;
      this.fine = undefined;
      this.answer = await client.timeline(this.bins);
      this.shown = key;
      if (recording !== this.recording) this.shownPart = { from: 0, to: this.answer.duration_ns };
      this.recording = recording;
      this.threads = threadsOf(this.answer);
      if (!isWhole(this.shownPart, this.answer.duration_ns)) this.refine();
      // Samples of folded stacks have no times.
      this.element.hidden = this.threads.length === 0 || this.answer.duration_ns < LEAST_NS;
      this.name();
    }
    this.interval = intervalOf(terms, this.answer.duration_ns);
    this.draw();
    // What was selected before there was a timeline, or in another one.
    if (this.wanted !== undefined && !this.marked) await this.find(this.wanted);
  }

  /** Shows when a function ran; undefined: none. */
  mark(name: string | undefined): void {
    if (this.isFixed || this.wanted === name) return;
    this.wanted = name;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const done = () => {
        if (this.wanted === name) this.timer = 0;
        this.markBusy();
      };
      this.find(name).then(done, done);
    }, name === undefined ? 0 : MARK_WAIT_MS);
    this.markBusy();
  }

  private markBusy(): void {
    if (this.underWay > 0 || this.timer !== 0 || this.refining !== 0) this.element.setAttribute("aria-busy", "true");
    else this.element.removeAttribute("aria-busy");
  }

  private async find(name: string | undefined): Promise<void> {
    if (name === undefined || !this.client) {
      this.marked = undefined;
    } else {
      const window = isWhole(this.shownPart, this.answer?.duration_ns ?? 0) ? [] : partOf(this.shownPart);
      const answer = await this.client.timeline(this.bins, 0, 1000, [["focus", exactly(name)], ...window]);
      if (this.wanted !== name) return;
      const threads = new Map<string, TimelineEntry[]>();
      for (const entry of answer.rows) threads.set(threadKey(entry), [...(threads.get(threadKey(entry)) ?? []), entry]);
      this.marked = { name, answer, rows: threads };
    }
    this.draw();
  }

  /** Zooms by a factor: into the selected interval, if it is not filled by what is shown already; otherwise about the middle. */
  zoom(factor: number): void {
    const { answer, interval, shownPart } = this;
    if (!answer) return;
    const aim = interval && around(interval, answer.duration_ns);
    if (factor < 1 && aim && aim.to - aim.from < 0.99 * (shownPart.to - shownPart.from)) this.look(aim);
    else this.look(scaled(shownPart, factor, (shownPart.from + shownPart.to) / 2, answer.duration_ns));
  }

  private unzoom(): void {
    this.look({ from: 0, to: this.answer?.duration_ns ?? 1 });
  }

  /** Shows a part of the recording, at first in the bins that are there. */
  private look(window: Window): void {
    this.shownPart = window;
    this.tooltip.hide();
    this.draw();
    if (this.isFixed) return;
    clearTimeout(this.refining);
    this.refining = setTimeout(() => this.refine(), MARK_WAIT_MS);
    this.markBusy();
  }

  /** Asks for bins of what is shown. */
  private refine(): void {
    this.refining = 0;
    const { client, shown, shownPart: window } = this;
    const isCurrent = () => shown === this.shown && window === this.shownPart;
    const done = () => {
      this.underWay--;
      this.markBusy();
    };
    this.underWay++;
    const asked = async () => {
      const isAll = isWhole(window, this.answer?.duration_ns ?? 0);
      const fine = isAll || !client ? undefined : await client.timeline(this.bins, 0, Math.max(1, Math.min(1000, this.threads.length)), partOf(window));
      if (!isCurrent()) return;
      this.fine = fine && { answer: fine, threads: threadsOf(fine) };
      this.draw();
      if (this.wanted !== undefined) await this.find(this.wanted);
    };
    asked().then(done, done);
  }

  /** Gives rows to the next threads. */
  private async more(): Promise<void> {
    const { answer, client, shown } = this;
    if (!answer || !client) return;
    const next = await client.timeline(this.bins, this.threads.length, MORE_THREADS);
    if (shown !== this.shown) return;
    const rows = [...answer.rows, ...next.rows];
    this.answer = { ...answer, rows, threads_left_out: Math.max(0, answer.threads_left_out - threadsOf(next).length) };
    this.threads = threadsOf(this.answer);
    this.name();
    this.draw();
  }

  private name(): void {
    const { answer } = this;
    if (!answer) return;
    this.labels.replaceChildren(
      ...this.threads.map((row) => {
        const { comm, pid, tid } = row.entries[0];
        const title = `Only thread ${comm}, ${tid} of process ${pid}`;
        const label = button(`${comm} ${tid}`, title, () => this.events.select(["tid", String(tid)]), "thread");
        label.replaceChildren(el("span", { class: "comm" }, comm || "?"), " ", el("span", { class: "tid" }, String(tid)));
        return label;
      }),
    );
    if (answer.threads_left_out === 0) return;
    const left = count(answer.threads_left_out);
    if (this.isFixed) this.labels.append(el("span", { class: "hint left-out" }, `and ${left} threads`));
    else this.labels.append(button(`Show more (${left} left)`, `Show more threads: ${left} have no row yet`, () => void this.more(), "small left-out"));
  }

  private draw(): void {
    const { answer } = this;
    if (!answer || this.area.clientWidth === 0) return;
    const { theme, width } = { theme: this.themes.current, width: this.area.clientWidth };
    const { shownPart: shown } = this;
    const length = shown.to - shown.from;
    const ticks = ticksOf(length, Math.max(2, Math.floor(width / 110)), shown.from);
    const pixel = (ns: number) => (width * (ns - shown.from)) / length;
    const drawn = this.drawn(answer);
    this.painter.draw(drawn.threads, drawn.answer, { theme, width, rowHeight: ROW, shown, ticks: ticks.map(({ ns }) => pixel(ns)), mark: this.marked });
    this.say(answer);
    this.place(this.interval);
    this.axis.replaceChildren(
      ...ticks.map(({ ns, text }) => {
        const label = el("span", {}, text);
        label.style.left = `${(100 * pixel(ns)) / width}%`;
        return label;
      }),
    );
  }

  /** The bins that are drawn: the finer ones, if they reach as far as what is shown. */
  private drawn(answer: TimelineAnswer): Drawn {
    const { fine, shownPart, threads } = this;
    const covers = fine && fine.answer.from_ns <= shownPart.from && fine.answer.from_ns + fine.answer.bin_ns * this.bins >= shownPart.to;
    return covers && fine.threads.length === threads.length ? fine : { answer, threads };
  }

  private say(answer: TimelineAnswer): void {
    const { interval } = this;
    const { from, to } = this.shownPart;
    const isAll = isWhole(this.shownPart, answer.duration_ns);
    this.all.hidden = isAll;
    this.out.disabled = isAll;
    const hint = isAll ? (this.isFixed ? "" : `drag to select, ${matchMedia("(pointer: coarse)").matches ? "two fingers" : "wheel"} to zoom`) : `showing ${duration(from)} to ${duration(to)}`;
    const selected = interval ? `${duration(interval.from)} to ${duration(interval.to)} selected` : "";
    const range = [selected, isAll && interval ? "" : hint].filter((part) => part !== "").join(", ");
    const note = answer.aggregated ? "; samples have no times of their own here: record with --timeline" : "";
    setText(this.summary, `${range}${note}`);
    this.canvas.setAttribute("aria-label", "Selected interval. Arrow keys move it, plus and minus narrow and widen it, Escape selects everything. Z and X zoom the timeline, Shift with arrow keys moves it.");
    this.canvas.setAttribute("aria-valuemin", "0");
    this.canvas.setAttribute("aria-valuemax", String(answer.duration_ns / 1e9));
    this.canvas.setAttribute("aria-valuenow", String((interval?.from ?? 0) / 1e9));
    this.canvas.setAttribute("aria-valuetext", interval ? selected : "everything");
  }

  /** Shows an interval as selected. */
  private place(interval: Window | undefined): void {
    this.brush.hidden = interval === undefined;
    if (!interval || !this.answer) return;
    const { from, to } = this.shownPart;
    const percent = (ns: number) => (100 * ns) / (to - from);
    this.brush.style.left = `${percent(interval.from - from)}%`;
    this.brush.style.width = `${percent(interval.to - interval.from)}%`;
  }

  private listen(): void {
    let start: number | undefined;
    const leave = () => {
      start = undefined;
      this.place(this.interval);
    };
    listenForZoom(this.area, { shown: () => this.shownPart, whole: () => this.answer?.duration_ns ?? 0, look: (window) => this.look(window) }, leave);
    const at = (event: PointerEvent) => {
      const bounds = this.area.getBoundingClientRect();
      return Math.max(0, Math.min(bounds.width, event.clientX - bounds.left));
    };
    const between = (a: number, b: number): Window => ({ from: this.under(Math.min(a, b)), to: this.under(Math.max(a, b)) });
    this.area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || this.isFixed || !event.isPrimary) return;
      start = at(event);
      this.area.setPointerCapture(event.pointerId);
    });
    this.area.addEventListener("pointermove", (event) => {
      const here = at(event);
      if (start === undefined) this.hover(event, here);
      else if (Math.abs(here - start) >= DRAG_PX) this.place(between(start, here));
    });
    this.area.addEventListener("pointerup", (event) => {
      const from = start;
      start = undefined;
      if (from !== undefined && Math.abs(at(event) - from) >= DRAG_PX) this.choose(between(from, at(event)));
    });
    this.area.addEventListener("pointercancel", leave);
    this.area.addEventListener("pointerleave", () => this.tooltip.hide());
    this.area.addEventListener("dblclick", () => this.events.clear());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private under(pixel: number): number {
    return timeAt(this.shownPart, pixel, this.area.clientWidth);
  }

  private choose({ from, to }: Window): void {
    this.tooltip.hide();
    if (to > from) this.events.select(intervalTerm(from, to));
  }

  private hover(event: PointerEvent, pixel: number): void {
    const { answer } = this;
    const drawn = answer && this.drawn(answer);
    const row = drawn?.threads[Math.floor((event.clientY - this.area.getBoundingClientRect().top) / ROW)];
    if (!drawn || !row || event.pointerType === "touch") {
      this.tooltip.hide();
      return;
    }
    const ns = this.under(pixel);
    const { from_ns, bin_ns } = drawn.answer;
    const bin = Math.max(0, Math.min(row.entries[0].bins.length - 1, Math.floor((ns - from_ns) / bin_ns)));
    const parts = row.entries.filter((entry) => entry.bins[bin] > 0).map((entry) => said(entry, bin, bin_ns));
    const { comm, tid } = row.entries[0];
    this.tooltip.show(event.clientX, event.clientY, `${comm} ${tid}, at ${duration(ns)}`, parts.join(", ") || "no samples");
  }

  private key(event: KeyboardEvent): void {
    const whole = this.answer?.duration_ns ?? 0;
    const interval = this.interval ?? { from: 0, to: whole };
    const middle = (interval.from + interval.to) / 2;
    const step = { ArrowLeft: -0.25, ArrowRight: 0.25 }[event.key];
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
    const next = step !== undefined ? moved(interval, step, whole) : factor !== undefined ? scaled(interval, factor, middle, whole) : undefined;
    const pan = event.shiftKey ? step : undefined;
    if (event.key === "Escape" && !isWhole(this.shownPart, whole)) this.unzoom();
    else if (pan !== undefined) this.look(moved(this.shownPart, pan, whole));
    else if (this.isFixed) return;
    else if (event.key === "Escape" && this.interval) this.events.clear();
    else if (next) this.choose(next);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** As words of a question. */
const partOf = ({ from, to }: Window): [string, string][] => [["from_ns", String(Math.floor(from))], ["until_ns", String(Math.ceil(to))]];

function binsOf({ duration_ns, frequency_hz }: RecordingAbout): number {
  const samples = (duration_ns / 1e9) * (frequency_hz ?? 1000);
  return Math.round(Math.max(60, Math.min(MOST_BINS, samples / SAMPLES_PER_BIN)));
}

function said(entry: TimelineEntry, bin: number, length: number): string {
  const value = entry.bins[bin];
  const isTime = TimelinePainter.isTime(entry.event);
  return isTime ? `${entry.event} ${Math.min(100, Math.round((100 * value) / length))}%` : `${entry.event} ${weight(value, "")}`;
}

/** Rows of one thread are together, the heaviest thread first. */
function threadsOf(answer: TimelineAnswer): ThreadRow[] {
  const threads: { key: string; entries: TimelineEntry[] }[] = [];
  for (const entry of answer.rows) {
    const key = threadKey(entry);
    const last = threads.at(-1);
    if (last?.key === key) last.entries.push(entry);
    else threads.push({ key, entries: [entry] });
  }
  return threads;
}
