// A few words beside the mouse pointer. Hidden from screen readers, which hear the details line instead.

import { el, setText } from "./dom";

export class Tooltip {
  private readonly name = el("div", { class: "tip-name" });
  private readonly share = el("div", { class: "tip-share" });
  private readonly box = el("div", { class: "tip", "aria-hidden": "true", hidden: true }, this.name, this.share);

  constructor() {
    document.body.append(this.box);
  }

  show(x: number, y: number, name: string, share: string): void {
    setText(this.name, name);
    setText(this.share, share);
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = x + 14 + width > innerWidth - 6 ? x - 14 - width : x + 14;
    const top = y + 18 + height > innerHeight - 6 ? y - 12 - height : y + 18;
    this.box.style.left = `${Math.max(6, left)}px`;
    this.box.style.top = `${Math.max(6, top)}px`;
  }

  remove(): void {
    this.box.remove();
  }

  hide(): void {
    this.box.hidden = true;
  }
}
