// What each source line and each instruction of a function costs.

import type { FunctionsAnswer, ListedInstruction, ListedLine, FunctionListing } from "../api/types";
import { button, el } from "../widgets/dom";
import { bar, table, type Column } from "../widgets/table";
import { functionLabel, share } from "./labels";
import type { View, ViewContext } from "./view";

export const sourceView: View = {
  id: "source",
  title: "Source",
  async show(host, context) {
    if (context.detail === "") {
      await showChoice(host, context);
      return;
    }
    const listing = await context.client.listing(context.detail, "");
    const which = button("← Other functions", "Choose another function", () => context.go("source"));
    const callers = button("Callers and callees", "Callers and callees of this function", () => context.go("table", context.detail));
    host.append(
      el("div", { class: "tools" }, which, callers, el("h2", { title: listing.function }, functionLabel(listing.function)), el("span", { class: "hint" }, lead(listing))),
      ...listing.notes.map((note) => el("p", { class: "hint" }, note)),
      // Interpreted functions have no instructions, and neither has a program whose file is elsewhere.
      el("div", { class: listing.instructions.length > 0 ? "source" : "source alone" }, lines(listing), ...(listing.instructions.length > 0 ? [instructions(listing)] : [])),
    );
  },
};

const lead = ({ percent_of_all, samples, code, adjusted }: FunctionListing): string =>
  `${share(percent_of_all)} of all in itself, ${samples} samples${code === "" ? "" : `; ${code}`}${adjusted ? "; moved to the instruction that was waited for" : ""}`;

/** The functions with the most time in themselves, to choose from. */
async function showChoice(host: HTMLElement, context: ViewContext): Promise<void> {
  const { rows } = await context.client.functions(200);
  type Row = FunctionsAnswer["rows"][number];
  const columns: Column<Row>[] = [
    { title: "Self", isNumber: true, value: (row) => row.self_weight, cell: (row) => bar(row.self_percent, share(row.self_percent)) },
    { title: "Function", cell: (row) => functionLabel(row.sym ?? "", row.kind) },
  ];
  const listed = rows.filter((row) => row.kind !== "marker" && row.self_samples > 0);
  const press = (row: Row) => context.go("source", row.sym ?? "");
  host.append(el("p", { class: "lead" }, context.isStore ? "Press a function for its source lines." : "Press a function for its source lines and instructions."), table(columns, listed, { label: "Functions", order: 0, press }));
}

const file = (path: string): string => path.split("/").at(-1) ?? path;

/** A line without its text. */
const place: Column<ListedLine> = { title: "Line", value: (row) => row.line, cell: (row) => el("code", {}, `${row.file}:${row.line}`) };
const number: Column<ListedLine> = { title: "Line", isNumber: true, value: (row) => row.line, cell: (row) => el("span", { title: row.file }, `${file(row.file)}:${row.line}`) };
const text: Column<ListedLine> = { title: "Source", cell: (row) => el("code", { title: row.text ?? "" }, row.text?.trim() ?? "(source not found)") };

function lines(listing: FunctionListing): HTMLElement {
  const columns: Column<ListedLine>[] = [
    { title: "Share", isNumber: true, value: (row) => row.adjusted_percent_of_function, cell: (row) => bar(row.adjusted_percent_of_function, share(row.adjusted_percent_of_function)) },
    ...(listing.code === "" && listing.lines.every((row) => row.text === null) ? [place] : [number, text]),
  ];
  const content = listing.lines.length > 0 ? table(columns, listing.lines, { label: "Source lines" }) : el("p", { class: "empty" }, "No line is known: build with -g1 or -g.");
  return el("section", { "aria-label": "Source lines" }, el("h3", {}, "Lines with samples"), content);
}

function instructions(listing: FunctionListing): HTMLElement {
  const columns: Column<ListedInstruction>[] = [
    { title: "Share", isNumber: true, cell: (row) => heat(row) },
    { title: "Address", isNumber: true, isMore: true, cell: (row) => el("code", {}, row.address.slice(2)) },
    { title: "Instruction", cell: (row) => el("code", { class: row.weight > 0 ? "hot" : "", title: title(row) }, row.text.trim()) },
  ];
  return el("section", { "aria-label": "Instructions" }, el("h3", {}, "Instructions"), table(columns, listing.instructions, { label: "Instructions" }));
}

/** Nothing where nothing was sampled: what is hot is to be seen at a glance. */
function heat(row: ListedInstruction): Node | string {
  const percent = row.adjusted_percent_of_function;
  return percent > 0 ? bar(percent, share(percent)) : "";
}

function title(row: ListedInstruction): string {
  const places = row.places.map((place) => `${place.function} (${file(place.file)}:${place.line})`);
  return [row.class.join(", "), ...places, row.doubt ?? ""].filter((part) => part !== "").join("\n");
}
