// Starts the page: reads its data, then hands over to the app.

import { decode, unpack } from "./model/decode";
import { App } from "./views/app";
import { byId, el } from "./widgets/dom";

async function start(): Promise<void> {
  const data = byId("profile").textContent ?? "";
  const profile = decode(await unpack(data));
  performance.mark("plumb-decoded");
  new App(profile);
}

start().catch((error: unknown) => {
  byId("graph").replaceChildren(el("p", { class: "note bad" }, `This page can't show its data: ${String(error)}`));
});
