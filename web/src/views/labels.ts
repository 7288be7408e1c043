// How functions and files are named in tables: short, with the whole name to be had by pointing at it.

import { brief } from "../model/names";
import { el } from "../widgets/dom";

/** A function's name. What does not fit is cut at its beginning, so that the function's own name stays. */
export function functionLabel(name: string, kind?: string): HTMLElement {
  const short = brief(name);
  const cut = Math.max(0, short.lastIndexOf("::"));
  const label = el("span", { class: `function ${kind ?? ""}`.trim(), title: name });
  if (cut > 0) label.append(el("span", { class: "scope" }, short.slice(0, cut + 2)));
  label.append(el("span", { class: "own" }, short.slice(cut > 0 ? cut + 2 : 0)));
  return label;
}

/** The last part of a path. */
export function fileLabel(path: string): HTMLElement {
  return el("span", { class: "file", title: path }, path.split("/").at(-1) || path);
}

/** `12.3%` of a share that the server worked out. */
export function share(percent: number): string {
  if (percent >= 99.95 && percent < 100) return "99.9%";
  if (percent >= 1) return `${percent.toFixed(1)}%`;
  if (percent >= 0.01) return `${percent.toFixed(2)}%`;
  return percent > 0 ? "<0.01%" : "0%";
}
