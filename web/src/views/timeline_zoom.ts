// The wheel and two fingers on the timeline: they zoom where they are, and move what is shown.

import { moved, scaled, timeAt, type Window } from "../model/window";

/** The wheel's pixels that make the window half as long, or twice. */
const HALF = 300;

export interface Zoomable {
  /** What is shown, and how long all is. */
  shown(): Window;
  whole(): number;
  look(window: Window): void;
}

/** Listens on an element that is as wide as what is shown. `pinching`: called when a second finger comes down. */
export function listenForZoom(area: HTMLElement, timeline: Zoomable, pinching: () => void): void {
  const under = (x: number): number => {
    const { left, width } = area.getBoundingClientRect();
    return timeAt(timeline.shown(), x - left, width);
  };
  const wheel = (event: WheelEvent): void => {
    if (timeline.whole() === 0) return;
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
    const [across, down] = event.shiftKey && event.deltaX === 0 ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    const next =
      Math.abs(across) > Math.abs(down)
        ? moved(timeline.shown(), (across * pixels) / Math.max(1, area.clientWidth), timeline.whole())
        : scaled(timeline.shown(), 2 ** ((down * pixels) / HALF), under(event.clientX), timeline.whole());
    timeline.look(next);
  };
  area.addEventListener("wheel", wheel, { passive: false });
  const fingers = new Map<number, number>();
  const ends = (): [number, number] => [Math.min(...fingers.values()), Math.max(...fingers.values())];
  area.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 2) pinching();
  });
  area.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const [left, right] = ends();
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size !== 2) return;
    const [toLeft, toRight] = ends();
    const factor = Math.max(1, right - left) / Math.max(1, toRight - toLeft);
    const before = timeline.shown();
    // What was between the fingers stays there.
    const middle = under((left + right) / 2);
    const next = scaled(before, factor, middle, timeline.whole());
    timeline.look(moved(next, ((left + right) / 2 - (toLeft + toRight) / 2) / Math.max(1, area.clientWidth), timeline.whole()));
  });
  for (const end of ["pointerup", "pointercancel"] as const) area.addEventListener(end, (event) => fingers.delete(event.pointerId));
}
