// The flame graph of what is selected as a view of the page.

import { decode } from "../model/decode";
import { appendFlame } from "./flame_parts";
import type { View } from "./view";

export const flameView: View = {
  id: "flame",
  title: "Flame graph",
  async show(host, { client, themes, signal, choices }) {
    const profile = decode(await client.flame());
    performance.mark("plumb-decoded");
    appendFlame(host, profile, { themes, signal, choices });
  },
};
