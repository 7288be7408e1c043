// How a heat map looks: the more, the further from the background; one hue, so that it can be read without telling colours apart.

import type { HeatmapAnswer } from "../api/types";
import { weight } from "../model/format";
import { rowsOf, shadesOf } from "../model/heat";
import { el } from "../widgets/dom";
import type { Theme } from "../widgets/theme";

/** Colours of nothing, of a middling and of the largest value. */
const RAMPS: Readonly<Record<Theme, readonly (readonly [number, number, number])[]>> = {
  light: [[243, 241, 236], [232, 150, 90], [110, 26, 80]],
  dark: [[31, 34, 39], [150, 70, 120], [255, 214, 130]],
};

function colourOf(theme: Theme, shade: number): [number, number, number] {
  const ramp = RAMPS[theme];
  const at = Math.min(1, Math.max(0, shade)) * (ramp.length - 1);
  const low = Math.min(ramp.length - 2, Math.floor(at));
  const part = at - low;
  return [0, 1, 2].map((i) => Math.round(ramp[low][i] + (ramp[low + 1][i] - ramp[low][i]) * part)) as [number, number, number];
}

export function drawHeat(canvas: HTMLCanvasElement, map: HeatmapAnswer, theme: Theme, width: number, height: number): void {
  const scale = Math.min(3, devicePixelRatio || 1);
  const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) throw new Error("this browser has no canvas");
  const { shades } = shadesOf(map);
  const [columns, rows] = [map.columns.length, rowsOf(map)];
  context.fillStyle = `rgb(${colourOf(theme, 0).join(" ")})`;
  context.fillRect(0, 0, across, down);
  const edge = (index: number, count: number, length: number) => Math.round((index * length) / count);
  for (let x = 0; x < columns; x++) {
    const left = edge(x, columns, across);
    for (let y = 0; y < rows; y++) {
      const shade = shades[x * rows + y];
      if (shade === 0) continue;
      const [top, bottom] = [down - edge(y + 1, rows, down), down - edge(y, rows, down)];
      context.fillStyle = `rgb(${colourOf(theme, shade).join(" ")})`;
      context.fillRect(left, top, Math.max(1, edge(x + 1, columns, across) - left), Math.max(1, bottom - top));
    }
  }
}

/** What the darkest colour stands for. */
export function scaleOf(map: HeatmapAnswer, theme: Theme): (Node | string)[] {
  const steps = [0, 0.12, 0.35, 0.55, 0.75, 1].map((shade) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.backgroundColor = `rgb(${colourOf(theme, shade).join(" ")})`;
    return swatch;
  });
  const { most } = shadesOf(map);
  return ["0", ...steps, map.unit === "ns" ? weight(most, "ns") : `${weight(most, "")} ${map.unit}`];
}
