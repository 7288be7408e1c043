// What each function cost, by itself and with what it called; of one of them its callers and callees (a sandwich).

import type { CallNode, CallTree, TableRow } from "../api/types";
import { weight } from "../model/format";
import { button, el } from "../widgets/dom";
import { openMenu } from "../widgets/menu";
import { bar, table, type Column } from "../widgets/table";
import { fileLabel, functionLabel, share } from "./labels";
import { outline } from "./outline";
import type { View, ViewContext } from "./view";

const LIMIT = 5000;

export const functionTable: View = {
  id: "table",
  title: "Table",
  async show(host, context) {
    if (context.detail === "") await showAll(host, context);
    else await showOne(host, context, context.detail);
  },
};

async function showAll(host: HTMLElement, context: ViewContext): Promise<void> {
  const answer = await context.client.functions(LIMIT);
  const unit = answer.unit ?? "";
  const columns: Column<TableRow>[] = [
    { title: "Self", isNumber: true, value: (row) => row.self_weight, cell: (row) => bar(row.self_percent, share(row.self_percent)) },
    { title: "Total", isNumber: true, value: (row) => row.children_weight, cell: (row) => bar(row.children_percent, share(row.children_percent)) },
    { title: unit === "" ? "Self, weight" : `Self (${unit === "ns" ? "time" : unit})`, isNumber: true, isMore: true, value: (row) => row.self_weight, cell: (row) => weight(row.self_weight, unit) },
    { title: "Samples", isNumber: true, isMore: true, value: (row) => row.self_samples, cell: (row) => String(row.self_samples) },
    { title: "Function", value: (row) => row.sym ?? "", cell: (row) => named(row) },
    { title: "File", isMore: true, value: (row) => row.dso ?? "", cell: (row) => fileLabel(row.dso ?? "") },
  ];
  const search = el("input", { type: "search", placeholder: "Search functions and files", "aria-label": "Search functions and files", spellcheck: "false", autocomplete: "off" });
  const place = el("div", {});
  const fill = () => {
    const text = search.value.toLowerCase();
    const rows = answer.rows.filter((row) => `${row.sym ?? ""} ${row.dso ?? ""}`.toLowerCase().includes(text));
    place.replaceChildren(
      table(columns, rows, {
        label: "Functions",
        order: 0,
        press: (row) => context.go("table", row.sym ?? ""),
        menu: (row, x, y) => rowMenu(context, row.sym ?? "", x, y),
      }),
    );
    if (rows.length === 0) place.replaceChildren(el("p", { class: "empty" }, "No function or file is called that."));
  };
  search.addEventListener("input", fill);
  fill();
  host.append(el("div", { class: "tools" }, search, el("span", { class: "hint" }, "Press a row for its callers and callees.")), place);
  if (answer.rows_more > 0) host.append(el("p", { class: "hint" }, `${answer.rows_more} rows with less are left out.`));
}

function named(row: TableRow): HTMLElement {
  const label = functionLabel(row.sym ?? "", row.kind);
  if (row.inlined) label.append(el("span", { class: "tag", title: "Only inlined calls" }, "inlined"));
  return label;
}

function rowMenu(context: ViewContext, name: string, x: number, y: number): void {
  openMenu(x, y, [...context.choices(name), { label: "Copy name", run: () => void navigator.clipboard?.writeText(name) }]);
}

async function showOne(host: HTMLElement, context: ViewContext, name: string): Promise<void> {
  const { trees } = await context.client.callersAndCallees(name);
  const [callers, callees] = [treeOf(trees, "callers"), treeOf(trees, "callees")];
  const root: CallNode | undefined = callees?.nodes.find((node) => node.parent === null);
  const back = button("← All functions", "Back to all functions", () => context.go("table"));
  const source = button(context.isStore ? "Source lines" : "Source and assembly", context.isStore ? "Source lines of this function" : "Source and assembly of this function", () => context.go("source", name));
  const head = el("div", { class: "tools" }, back, source, el("h2", { title: name }, functionLabel(name)));
  host.append(head);
  if (!root || !callers || !callees) {
    host.append(el("p", { class: "empty" }, "No sample of the selection is in this function."));
    return;
  }
  head.append(el("span", { class: "hint" }, `${share(root.children_percent)} total, ${share(root.self_percent)} self`));
  const open = (node: CallNode) => node.sym !== undefined && node.sym !== name && context.go("table", node.sym);
  const menu = (node: CallNode, x: number, y: number) => node.sym !== undefined && rowMenu(context, node.sym, x, y);
  const part = (title: string, tree: CallTree) =>
    el("section", { "aria-label": title }, el("h3", {}, title), outline(tree, { label: title, skipsRoot: true, open, menu }));
  host.append(el("div", { class: "sandwich" }, part("Callers", callers), part("Callees", callees)));
}

const treeOf = (trees: readonly CallTree[], kind: string): CallTree | undefined => trees.find((tree) => tree.kind === kind);
