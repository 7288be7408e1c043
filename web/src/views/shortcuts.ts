// Keys of a flame graph: single letters, anywhere but in a text.

/** Runs what a key stands for, until `signal` is aborted. */
export function listenFor(shortcuts: Readonly<Record<string, () => void>>, signal: AbortSignal): void {
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (isTyping || document.querySelector("dialog[open]")) return;
    const run = Object.hasOwn(shortcuts, event.key) ? shortcuts[event.key] : undefined;
    if (!run) return;
    run();
    event.preventDefault();
  };
  addEventListener("keydown", key, { signal });
}
