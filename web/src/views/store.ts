// The page of a server that keeps a store: which services there are.

import type { ServerAbout } from "../api/types";
import { el } from "../widgets/dom";

export function showStore(about: ServerAbout): void {
  document.body.replaceChildren(
    el("header", {}, el("h1", {}, "plumb: a store of profiles")),
    el("p", { class: "empty" }, `This is plumb ${about.plumb}. Grafana and plumb query read it; /api/v1/openapi.json describes what it answers.`),
  );
}
