// Making elements. Text only ever goes in as text, and printable: names of symbols are hostile.

import { printable } from "./printable";

type Attributes = Readonly<Record<string, string | boolean>>;

/** Attributes that people read or hear. */
const READ = ["title", "aria-label", "alt", "placeholder"];

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, READ.includes(name) ? printable(value) : value);
  }
  element.append(...children.map((child) => (typeof child === "string" ? printable(child) : child)));
  return element;
}

/** Replaces what an element holds by a text. */
export function setText(element: Element, text: string): void {
  element.textContent = printable(text);
}

/** A button with an accessible name that may say more than its label. */
export function button(label: string, title: string, onClick: () => void, kind = ""): HTMLButtonElement {
  const element = el("button", { type: "button", class: kind });
  relabel(element, label, title);
  element.addEventListener("click", onClick);
  return element;
}

/** Gives a button another label. What can be read on it is part of its name, so that whoever speaks to the machine can say it. */
export function relabel(element: HTMLButtonElement, label: string, title: string): void {
  const isSaid = !/\p{L}{2}/u.test(label) || title.toLowerCase().includes(label.toLowerCase());
  setText(element, label);
  element.title = printable(title);
  element.setAttribute("aria-label", printable(isSaid ? title : `${label}: ${title}`));
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}
