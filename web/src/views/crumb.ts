// Says that the picture is of all calls of one function, and leads back.

import { brief } from "../model/names";
import { button, el } from "../widgets/dom";

export class Crumb {
  private readonly text = el("span", {});

  constructor(
    private readonly host: HTMLElement,
    onLeave: () => void,
  ) {
    host.append(button("← Everything", "Back to the whole picture", onLeave), this.text);
  }

  show(name: string | undefined, share: string): void {
    this.host.hidden = name === undefined;
    if (name === undefined) return;
    const short = brief(name);
    this.text.replaceChildren("All calls of ", el("b", { title: name }, short), ` (${share} of all), callers and callees merged`);
  }
}
