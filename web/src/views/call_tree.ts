// The call tree: from the roots down, or from the innermost functions up.

import { button, el } from "../widgets/dom";
import { openMenu } from "../widgets/menu";
import { outline } from "./outline";
import type { View } from "./view";

export const callTree: View = {
  id: "tree",
  title: "Call tree",
  async show(host, context) {
    const isUp = context.detail === "bottom-up";
    const { trees } = await context.client.tree(isUp ? "bottom-up" : "top-down");
    const way = (title: string, detail: string, isOn: boolean) => {
      const element = button(title, title, () => context.go("tree", detail));
      element.setAttribute("aria-pressed", String(isOn));
      return element;
    };
    const tools = el(
      "div",
      { class: "tools" },
      el("div", { class: "buttons" }, way("From roots down", "", !isUp), way("From leaves up", "bottom-up", isUp)),
      el("span", { class: "hint" }, "Branches below 0.5% are left out."),
    );
    const tree = outline(trees[0], {
      label: "Call tree",
      open: (node) => node.sym !== undefined && context.go("table", node.sym),
      menu: (node, x, y) => node.sym !== undefined && openMenu(x, y, context.choices(node.sym)),
    });
    host.append(tools, tree);
  },
};
