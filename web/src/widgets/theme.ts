// Light or dark: the system's choice until the reader makes his own.

const KEY = "plumb-theme";
export type Theme = "light" | "dark";

export class Themes {
  private chosen: Theme | undefined;
  private readonly system = matchMedia("(prefers-color-scheme: dark)");

  private readonly listeners = new Set<(theme: Theme) => void>();

  constructor() {
    this.chosen = stored();
    this.system.addEventListener("change", () => this.apply());
    document.documentElement.dataset["theme"] = this.current;
  }

  get current(): Theme {
    return this.chosen ?? (this.system.matches ? "dark" : "light");
  }

  /** Calls `listener` with each change, until `signal` is aborted. */
  listen(listener: (theme: Theme) => void, signal?: AbortSignal): void {
    this.listeners.add(listener);
    signal?.addEventListener("abort", () => this.listeners.delete(listener));
  }

  toggle(): void {
    this.chosen = this.current === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, this.chosen);
    } catch {
      // A page opened from a file may have no storage: then the choice holds until the page is closed.
    }
    this.apply();
  }

  private apply(): void {
    document.documentElement.dataset["theme"] = this.current;
    for (const listener of this.listeners) listener(this.current);
  }
}

function stored(): Theme | undefined {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : undefined;
  } catch {
    return undefined;
  }
}
