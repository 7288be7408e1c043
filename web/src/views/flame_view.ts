// The flame graph of what is selected as a view of the page: stacks merged, or in the order of time. The view's own word is `time` then.

import { decode } from "../model/decode";
import { count } from "../model/format";
import { intervalTerm } from "../model/selection";
import { appendFlame } from "./flame_parts";
import { el } from "../widgets/dom";
import type { View, ViewContext } from "./view";

export const flameView: View = {
  id: "flame",
  title: "Flame graph",
  async show(host, context) {
    const { client, themes, signal, detail, isFile, isStore, editor } = context;
    const isTimed = detail === "time";
    const order = isTimed ? "time" : "name";
    let bytes;
    try {
      bytes = await client.flame(order);
    } catch (error) {
      if (!isTimed || signal.aborted) throw error;
      host.append(...refused(context, error));
      return;
    }
    const profile = decode(bytes);
    performance.mark("plumb-decoded");
    const { leftOut } = profile;
    if (leftOut > 0) host.append(el("p", { class: "hint" }, `The ${count(leftOut)} smallest boxes are summed up as “… smaller calls”. A filter, such as one by function, shows them.`));
    appendFlame(host, profile, {
      themes,
      signal,
      editor,
      choices: context.choices,
      mark: context.mark,
      ...(isFile || isStore ? {} : { inTime: (isOn) => context.go("flame", isOn ? "time" : ""), interval: (from, to) => context.select(intervalTerm(from, to)) }),
    });
  },
};

/** Why there is no order of time, with a way back. */
function refused(context: ViewContext, error: unknown): HTMLElement[] {
  const back = el("button", { type: "button" }, "Order by name");
  back.addEventListener("click", () => context.go("flame"));
  const why = error instanceof Error ? error.message : String(error);
  return [el("div", { class: "problem", role: "alert" }, el("p", {}, why), back)];
}
