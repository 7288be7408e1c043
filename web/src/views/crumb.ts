// Says that the picture is of all calls of one function, or that recursion is put together, and leads back.

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

  /** `calls`: the function whose calls are put together; `recursion`: whose recursion is, of all functions if it is empty. */
  show(calls: string | undefined, recursion: string | undefined, share: string): void {
    this.host.hidden = calls === undefined && recursion === undefined;
    const bold = (name: string) => el("b", { title: name }, brief(name));
    const parts: (Node | string)[] = [];
    if (calls !== undefined) parts.push("All calls of ", bold(calls), ` (${share} of all), callers and callees merged`);
    if (parts.length > 0 && recursion !== undefined) parts.push("; ");
    if (recursion === "") parts.push("direct recursion merged");
    else if (recursion !== undefined) parts.push("recursion of ", bold(recursion), " merged");
    this.text.replaceChildren(...parts);
  }
}
