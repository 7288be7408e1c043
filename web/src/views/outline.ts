// A call tree as lines that unfold: by a click, or by the arrow keys as in any tree.

import type { CallNode, CallTree } from "../api/types";
import { el } from "../widgets/dom";
import { bar } from "../widgets/table";
import { functionLabel, share } from "./labels";

export interface OutlineOptions {
  readonly label: string;
  /** Leaves the first nodes out: they are what the tree is of. */
  readonly skipsRoot?: boolean;
  open(node: CallNode): void;
  menu(node: CallNode, x: number, y: number): void;
}

/** A branch unfolds by itself while it has this share of its parent. */
const FOLLOWED = 0.6;
const DEEPEST = 12;

interface Line {
  readonly node: CallNode;
  readonly index: number;
  readonly depth: number;
  readonly row: HTMLElement;
}

export function outline(tree: CallTree, options: OutlineOptions): HTMLElement {
  const children = childrenOf(tree);
  const host = el("div", { class: "outline", role: "tree", "aria-label": options.label });
  const opened = new Set<number>();
  let roots = children.get(-1) ?? [];
  if (options.skipsRoot) roots = roots.flatMap((root) => children.get(root) ?? []);
  for (const root of roots.slice(0, 1)) follow(tree, children, root, opened);
  let lines: Line[] = [];

  const fill = (focused?: number) => {
    lines = [];
    const walk = (indexes: readonly number[], depth: number) => {
      for (const index of indexes) {
        lines.push(line(index, depth));
        if (opened.has(index)) walk(children.get(index) ?? [], depth + 1);
      }
    };
    walk(roots, 0);
    host.replaceChildren(...lines.map(({ row }) => row));
    if (lines.length === 0) host.append(el("p", { class: "empty" }, "None."));
    const at = lines.find(({ index }) => index === focused);
    (at ?? lines[0])?.row.setAttribute("tabindex", "0");
    if (focused !== undefined) at?.row.focus();
  };
  const turn = (index: number) => {
    if (opened.has(index)) opened.delete(index);
    else follow(tree, children, index, opened);
    fill(index);
  };
  const line = (index: number, depth: number): Line => {
    const node = tree.nodes[index];
    const inner = children.get(index)?.length ?? 0;
    const row = el("div", { class: "node", role: "treeitem", tabindex: "-1", "aria-level": String(depth + 1) });
    if (inner > 0) row.setAttribute("aria-expanded", String(opened.has(index)));
    const fold = el("span", { class: "fold", "aria-hidden": "true" }, inner === 0 ? "" : opened.has(index) ? "▾" : "▸");
    fold.style.setProperty("--depth", String(Math.min(depth, 40)));
    const name = node.sym === undefined ? el("span", { class: "function" }, node.comm ?? "") : functionLabel(node.sym, node.kind);
    row.append(bar(node.children_percent, share(node.children_percent)), el("span", { class: "self" }, share(node.self_percent)), fold, name);
    row.addEventListener("click", () => (inner > 0 ? turn(index) : row.focus()));
    row.addEventListener("dblclick", () => options.open(node));
    row.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      options.menu(node, event.clientX, event.clientY);
    });
    return { node, index, depth, row };
  };
  host.addEventListener("keydown", (event) => {
    const at = lines.findIndex(({ row }) => row === document.activeElement);
    const here = lines[at];
    if (!here) return;
    const goto = (to: number) => lines[to]?.row.focus();
    const has = (children.get(here.index)?.length ?? 0) > 0;
    if (event.key === "ArrowDown") goto(at + 1);
    else if (event.key === "ArrowUp") goto(at - 1);
    else if (event.key === "ArrowRight" && has && !opened.has(here.index)) turn(here.index);
    else if (event.key === "ArrowRight") goto(at + 1);
    else if (event.key === "ArrowLeft" && opened.has(here.index)) turn(here.index);
    else if (event.key === "ArrowLeft") goto(outward(lines, at));
    else if (event.key === "Enter") options.open(here.node);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  fill();
  const head = el("div", { class: "node head", "aria-hidden": "true" }, el("span", {}, "Total"), el("span", { class: "self" }, "Self"), el("span", {}, "Function"));
  return el("div", { class: "outline-frame" }, head, host);
}

/** The line of the node above. */
function outward(lines: readonly Line[], at: number): number {
  let above = at - 1;
  while (above >= 0 && lines[above].depth >= lines[at].depth) above--;
  return above;
}

/** Unfolds a node, and what has most of its cost. */
function follow(tree: CallTree, children: ReadonlyMap<number, readonly number[]>, from: number, opened: Set<number>): void {
  let index = from;
  for (let depth = 0; depth < DEEPEST; depth++) {
    opened.add(index);
    const next = children.get(index)?.[0];
    if (next === undefined || tree.nodes[next].children_weight < FOLLOWED * tree.nodes[index].children_weight) return;
    index = next;
  }
}

/** The nodes below each, heaviest first as they come; below -1 the first ones. */
function childrenOf(tree: CallTree): Map<number, number[]> {
  const children = new Map<number, number[]>();
  tree.nodes.forEach((node, index) => {
    const parent = node.parent ?? -1;
    const known = children.get(parent);
    if (known) known.push(index);
    else children.set(parent, [index]);
  });
  for (const list of children.values()) list.sort((a, b) => tree.nodes[b].children_weight - tree.nodes[a].children_weight);
  return children;
}
