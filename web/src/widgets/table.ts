// Tables with a header that orders the rows: by a click, or by Enter on it.

import { el, setText } from "./dom";

export interface Column<R> {
  readonly title: string;
  /** What the column shows. */
  cell(row: R): Node | string;
  /** What rows are ordered by; without it the column orders nothing. */
  readonly value?: (row: R) => number | string;
  readonly isNumber?: boolean;
  /** Left out on a narrow screen. */
  readonly isMore?: boolean;
}

export interface TableOptions<R> {
  readonly label: string;
  /** The column that orders the rows at first, largest first. */
  readonly order?: number;
  press?(row: R): void;
  menu?(row: R, x: number, y: number): void;
}

/** Rows that are put into the page at first, and with each press on the button below. */
const ROWS = 200;

export function table<R>(columns: readonly Column<R>[], rows: readonly R[], options: TableOptions<R>): HTMLElement {
  let [order, falling] = [options.order ?? -1, true];
  let shown = ROWS;
  const body = el("tbody");
  const more = el("button", { type: "button", class: "more-rows" });
  const heads = columns.map((column, index) => {
    const head = el("th", { scope: "col", class: classes(column) });
    if (!column.value) {
      setText(head, column.title);
      return head;
    }
    const sorter = el("button", { type: "button" }, column.title);
    sorter.addEventListener("click", () => {
      [falling, order] = [order === index ? !falling : column.isNumber === true, index];
      fill();
    });
    head.append(sorter);
    return head;
  });
  const sorted = (): readonly R[] => {
    const value = columns[order]?.value;
    if (!value) return rows;
    const sign = falling ? -1 : 1;
    const compare = (a: number | string, b: number | string) => (a < b ? -sign : a > b ? sign : 0);
    return [...rows].sort((a, b) => compare(value(a), value(b)));
  };
  const fill = () => {
    heads.forEach((head, index) => {
      const state = index === order ? (falling ? "descending" : "ascending") : "none";
      if (columns[index].value) head.setAttribute("aria-sort", state);
    });
    const all = sorted();
    body.replaceChildren(...all.slice(0, shown).map((row) => line(columns, row, options)));
    more.hidden = all.length <= shown;
    setText(more, `Show more rows (${Math.max(0, all.length - shown)} left)`);
  };
  more.addEventListener("click", () => {
    shown += 5 * ROWS;
    fill();
  });
  fill();
  const element = el("table", { "aria-label": options.label }, el("thead", {}, el("tr", {}, ...heads)), body);
  return el("div", { class: "table" }, element, more);
}

const classes = <R>(column: Column<R>): string =>
  [column.isNumber ? "number" : "", column.isMore ? "more" : ""].join(" ").trim();

function line<R>(columns: readonly Column<R>[], row: R, options: TableOptions<R>): HTMLElement {
  const cells = columns.map((column) => el("td", { class: classes(column) }, column.cell(row)));
  const element = el("tr", {}, ...cells);
  const { press, menu } = options;
  if (press) {
    element.classList.add("pressed");
    element.tabIndex = 0;
    element.addEventListener("click", (event) => {
      if (!(event.target as Element).closest("button, a")) press(row);
    });
    element.addEventListener("keydown", (event) => {
      if (event.target !== element) return;
      if (event.key === "Enter") press(row);
      else if (event.key === "ArrowDown") (element.nextElementSibling as HTMLElement | null)?.focus();
      else if (event.key === "ArrowUp") (element.previousElementSibling as HTMLElement | null)?.focus();
      else if (event.key === "ContextMenu" && menu) menu(row, element.getBoundingClientRect().left + 20, element.getBoundingClientRect().bottom);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
  if (menu) {
    element.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      menu(row, event.clientX, event.clientY);
    });
  }
  return element;
}

/** A share with a bar as long. */
export function bar(percent: number, text: string): HTMLElement {
  const fill = el("span", { class: "bar-fill" });
  fill.style.width = `${Math.min(100, Math.max(0, percent))}%`;
  return el("span", { class: "bar" }, fill, el("span", { class: "bar-text" }, text));
}
