// The elements that a flame graph is made of, wherever it is shown.

import type { Profile } from "../model/decode";
import { el } from "../widgets/dom";
import { App } from "./app";
import type { Embedding } from "./embedding";

/** Appends a flame graph to a host; it starts when the host is told that it is shown: the picture looks its places up in the page. */
export function appendFlame(host: HTMLElement, profile: Profile, embedding: Embedding): void {
  host.append(
    el("nav", { id: "toolbar", "aria-label": "Search and view" }),
    el("div", { id: "crumb", hidden: true }),
    el("p", { id: "reading", class: "hint", hidden: true }),
    el("div", { id: "graph" }),
    el("section", { id: "details", "aria-label": "Details of a box" }),
    el("ul", { id: "legend", "aria-label": "Colours" }),
  );
  host.addEventListener("shown", () => new App(profile, embedding), { once: true });
}
