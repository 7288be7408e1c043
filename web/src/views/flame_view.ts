// The flame graph as a view of the page: the same picture as `plumb flame` writes, of what is selected.

import { decode } from "../model/decode";
import { el } from "../widgets/dom";
import { App } from "./app";
import type { View } from "./view";

export const flameView: View = {
  id: "flame",
  title: "Flame graph",
  async show(host, { client, themes, signal, choices }) {
    const profile = decode(await client.flame());
    host.append(
      el("nav", { id: "toolbar", "aria-label": "Search and view" }),
      el("div", { id: "crumb", hidden: true }),
      el("div", { id: "graph" }),
      el("section", { id: "details", "aria-label": "Details of a box" }),
      el("ul", { id: "legend", "aria-label": "Colours" }),
    );
    // The picture looks its places up in the page.
    host.addEventListener("shown", () => new App(profile, { themes, signal, choices }), { once: true });
  },
};
