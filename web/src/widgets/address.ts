// The address: behind `?` the page keeps its state, behind `#` a picture its own. Some browsers let a page from a file change nothing but its
// hash: then the page's state lasts as long as the page.

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

/** Takes on what stands behind the `#`; `isStep`: as a step that Back undoes. */
export function putHash(hash: string, isStep: boolean): void {
  const url = hash === "" ? location.pathname + location.search : `#${hash}`;
  try {
    if (isStep) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  } catch {
    location.hash = hash;
  }
}
