// Colours: the hue says what kind of code it is, small differences within it tell neighbours apart. The same name has
// the same colour in every picture. Texts keep a contrast of at least 4.5 to 1 on all of them.

import { KINDS, type Frames, type Kind } from "../model/decode";
import type { Theme } from "./theme";

interface Tone {
  readonly hue: number;
  readonly saturation: number;
  readonly lightness: number;
}

const tone = (hue: number, saturation: number, lightness: number): Tone => ({ hue, saturation, lightness });

const TONES: Readonly<Record<Theme, Readonly<Record<Kind, Tone>>>> = {
  light: {
    root: tone(220, 14, 89),
    group: tone(220, 16, 85),
    program: tone(27, 84, 74),
    inlined: tone(48, 82, 76),
    library: tone(158, 36, 71),
    jit: tone(290, 40, 82),
    kernel: tone(213, 62, 80),
    missing: tone(0, 0, 84),
  },
  dark: {
    root: tone(220, 9, 25),
    group: tone(220, 10, 30),
    program: tone(24, 56, 35),
    inlined: tone(44, 52, 29),
    library: tone(162, 34, 29),
    jit: tone(290, 26, 37),
    kernel: tone(214, 42, 37),
    missing: tone(0, 0, 30),
  },
};

/** What the legend calls each kind; `root` and `group` explain themselves. */
export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  root: "everything",
  group: "group",
  program: "program",
  inlined: "inlined call",
  library: "library",
  jit: "JIT code",
  kernel: "kernel",
  missing: "callers missing",
};

export interface Palette {
  /** Fill of each frame's boxes. */
  readonly fills: readonly string[];
  readonly text: string;
  readonly background: string;
  readonly crowd: string;
  readonly match: string;
  readonly matchText: string;
  readonly outline: string;
  readonly hatch: string;
}

export function paletteFor(theme: Theme, frames: Frames): Palette {
  const fills = frames.name.map((name, i) => fillOf(theme, frames.kind[i], name));
  return theme === "light"
    ? {
        fills,
        text: "#1b1d21",
        background: "#fbfaf8",
        crowd: "#e4e0d8",
        match: "#6d3fc4",
        matchText: "#ffffff",
        outline: "#14161a",
        hatch: "rgb(0 0 0 / 0.10)",
      }
    : {
        fills,
        text: "#f3f1ed",
        background: "#17191d",
        crowd: "#33363c",
        match: "#b99aff",
        matchText: "#17131f",
        outline: "#ffffff",
        hatch: "rgb(255 255 255 / 0.10)",
      };
}

/** The kind's plain colour, for the legend. */
export function swatch(theme: Theme, kind: Kind): string {
  const { hue, saturation, lightness } = TONES[theme][kind];
  return `hsl(${hue} ${saturation}% ${lightness}%)`;
}

function fillOf(theme: Theme, kind: Kind, name: string): string {
  const { hue, saturation, lightness } = TONES[theme][kind];
  if (kind === "root" || kind === "missing") return `hsl(${hue} ${saturation}% ${lightness}%)`;
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  const wobble = (shift: number) => (((hash >>> shift) & 255) / 255) * 2 - 1;
  const lift = theme === "light" ? 3.5 : 2;
  return `hsl(${(hue + 6 * wobble(4)).toFixed(1)} ${saturation}% ${(lightness + lift * wobble(14)).toFixed(1)}%)`;
}

/** Kinds that the profile has, in the order of the legend. */
export function kindsIn(frames: Frames): Kind[] {
  const present = new Set(frames.kind);
  return KINDS.filter((kind) => kind !== "root" && kind !== "group" && present.has(kind));
}
