// A small menu at the pointer, for what a click can't say. Closes on Escape, on a choice and on a click elsewhere.

import { el } from "./dom";

export interface Choice {
  readonly label: string;
  readonly run?: () => void;
  /** A link, in place of something that runs. */
  readonly href?: string;
}

export function openMenu(x: number, y: number, choices: readonly Choice[]): void {
  const before = document.activeElement;
  const menu = el("div", { class: "menu", role: "menu" });
  const close = () => {
    menu.remove();
    removeEventListener("pointerdown", outside, true);
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const outside = (event: Event) => {
    if (!menu.contains(event.target as Node)) close();
  };
  const items = choices.map((choice) => {
    const attributes = { role: "menuitem", tabindex: "-1" };
    const item = choice.href === undefined ? el("button", { type: "button", ...attributes }, choice.label) : el("a", { href: choice.href, ...attributes }, choice.label);
    item.addEventListener("click", () => {
      close();
      choice.run?.();
    });
    return item;
  });
  menu.append(...items);
  menu.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement as HTMLElement as (typeof items)[number]);
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key === "ArrowDown") items[(at + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items[(at + items.length - 1) % items.length].focus();
    else if (event.key === "Home") items[0].focus();
    else if (event.key === "End") items[items.length - 1].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.body.append(menu);
  // A menu that is higher than the window scrolls.
  menu.style.maxHeight = `${innerHeight - 8}px`;
  menu.style.left = `${Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 4))}px`;
  menu.style.top = `${Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 4))}px`;
  addEventListener("pointerdown", outside, true);
  items[0].focus();
}
