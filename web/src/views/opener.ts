// Opens a file of this machine as a recording: dropped anywhere on the page, or chosen with a button, by keys too.

import { button, el, setText } from "../widgets/dom";

export class FileOpener {
  readonly notice = el("p", { class: "notice", role: "status", hidden: true });
  private readonly input = el("input", { type: "file", multiple: true, hidden: true, tabindex: "-1", "aria-label": "Files to open" });
  readonly button: HTMLElement;

  /** `open` opens one file and returns a sentence about it, empty if there is nothing to say. */
  constructor(private readonly open: (file: File) => Promise<string>) {
    const choose = button("Open…", "Open files of this machine; or drop them on the page", () => this.input.click());
    this.button = el("span", { class: "opener" }, choose, this.input);
    this.input.addEventListener("change", () => {
      void this.take([...(this.input.files ?? [])]);
      this.input.value = "";
    });
    this.listen();
  }

  /** Takes what was said of the last file off the page. */
  leave(): void {
    this.notice.hidden = true;
  }

  private listen(): void {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const mark = (isOver: boolean) => document.body.classList.toggle("dropping", isOver);
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(true);
    });
    document.addEventListener("dragleave", (event) => {
      // Into an element is out of another one.
      if (event.relatedTarget === null) mark(false);
    });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(false);
      void this.take([...(event.dataTransfer?.files ?? [])]);
    });
  }

  private async take(files: readonly File[]): Promise<void> {
    for (const file of files) {
      this.say(`Opening ${file.name}…`, "");
      this.notice.setAttribute("aria-busy", "true");
      try {
        this.say(await this.open(file), "");
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        const text = why.startsWith(`${file.name}: `) ? why.slice(file.name.length + 2) : why;
        this.say(text.startsWith("cannot open") ? text : `cannot open ${file.name}: ${text}`, "bad");
      }
      this.notice.removeAttribute("aria-busy");
    }
  }

  private say(text: string, kind: string): void {
    setText(this.notice, text);
    this.notice.className = `notice ${kind}`;
    this.notice.hidden = text === "";
  }
}
