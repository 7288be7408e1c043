// The part of the address behind `?`, where the page keeps its state. Some browsers let a page from a file change nothing there: then
// the state lasts as long as the page.

let kept: string | undefined;

export const query = (): URLSearchParams => new URLSearchParams(kept ?? location.search);

/** Takes a new state, as a step that Back undoes; what is behind `#` goes. */
export function push(search: URLSearchParams): void {
  const text = search.toString();
  try {
    history.pushState(null, "", `${location.pathname}${text === "" ? "" : `?${text}`}`);
  } catch {
    kept = text;
    location.hash = "";
  }
}
