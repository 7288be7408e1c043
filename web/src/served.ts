// Starts the page that a server shows.

import { recordings, serverAbout } from "./api/client";
import { Shell } from "./views/shell";
import { showStore } from "./views/store";
import { el } from "./widgets/dom";

async function start(): Promise<void> {
  const about = await serverAbout();
  if (about.serves === "store") showStore(about);
  else new Shell(await recordings(), about);
}

start().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  document.body.replaceChildren(el("p", { class: "problem", role: "alert" }, message));
});
