// Colours: the hue says what kind of code it is, small differences within it tell neighbours apart. The same name has
// the same colour in every picture. Texts keep a contrast of at least 4.5 to 1 on all of them.

import { KINDS, type Frames, type Kind } from "../model/decode";
import type { Mark } from "../model/diff";
import { css, hsl, type Colour } from "./colour";
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
    fault: tone(353, 68, 81),
    process: tone(250, 62, 84),
    interrupt: tone(188, 50, 75),
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
    fault: tone(353, 38, 38),
    process: tone(252, 32, 41),
    interrupt: tone(188, 46, 28),
    missing: tone(0, 0, 30),
  },
};

/** What a differential picture says of a box: red costs more, blue less, grey is within noise. */
const CHANGES: Readonly<Record<Theme, Readonly<Record<Mark, Tone>>>> = {
  light: { noise: tone(220, 8, 88), more: tone(10, 76, 79), less: tone(208, 66, 80), new: tone(4, 80, 68), gone: tone(212, 74, 68) },
  dark: { noise: tone(220, 6, 27), more: tone(10, 38, 36), less: tone(210, 36, 37), new: tone(2, 60, 40), gone: tone(212, 62, 38) },
};

/** What the legend calls each mark. */
export const MARK_NAMES: Readonly<Record<Mark, string>> = {
  noise: "within noise",
  more: "costs more",
  less: "costs less",
  new: "new",
  gone: "gone",
};

export const changeFill = (theme: Theme, mark: Mark): string => css(plain(CHANGES[theme][mark]));

/** What the legend calls each kind; `root` and `group` explain themselves. */
export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  root: "everything",
  group: "group",
  program: "program",
  inlined: "inlined call",
  library: "library",
  jit: "JIT code",
  kernel: "kernel",
  fault: "kernel: page faults",
  process: "kernel: fork, exec, exit",
  interrupt: "kernel: interrupts",
  missing: "callers missing",
};

export interface Palette {
  /** Fill of a frame's boxes, worked out when the first of them is drawn. */
  fill(frame: number): Colour;
  /** Fill of boxes in a differential picture. */
  readonly changes: Readonly<Record<Mark, Colour>>;
  readonly text: string;
  readonly background: Colour;
  readonly crowd: Colour;
  readonly match: Colour;
  readonly matchText: string;
  readonly outline: string;
  readonly hatch: string;
}

/** Tones of files, the heaviest first; they differ in lightness too. Files beyond these are grey. */
const FILES: Readonly<Record<Theme, readonly Tone[]>> = {
  light: [tone(32, 90, 72), tone(205, 76, 78), tone(158, 44, 70), tone(52, 84, 76), tone(320, 52, 85), tone(232, 62, 86), tone(6, 72, 78)],
  dark: [tone(30, 64, 36), tone(206, 56, 36), tone(160, 50, 26), tone(48, 62, 28), tone(320, 32, 42), tone(236, 40, 48), tone(6, 50, 42)],
};
const OTHER_FILE: Readonly<Record<Theme, Tone>> = { light: tone(220, 6, 84), dark: tone(220, 6, 31) };

const plain = ({ hue, saturation, lightness }: Tone): Colour => hsl(hue, saturation, lightness);

/** The colour of the file with a rank by weight; -1: one of the others. */
export const fileFill = (theme: Theme, rank: number): string => css(plain(FILES[theme][rank] ?? OTHER_FILE[theme]));

/** How many files have a colour of their own. */
export const FILE_COLOURS = FILES.light.length;

/** `files`: colours say which file code is in; the heaviest files in their order. */
export function paletteFor(theme: Theme, frames: Frames, files?: readonly string[]): Palette {
  const ranks = new Map(files?.map((file, rank) => [file, rank]));
  const fills = new Int32Array(frames.name.length).fill(-1);
  const worked = (frame: number): Colour => {
    const kind = frames.kind[frame];
    const isCode = kind !== "root" && kind !== "group" && kind !== "missing";
    const tone = files && isCode ? (FILES[theme][ranks.get(frames.dso[frame]) ?? -1] ?? OTHER_FILE[theme]) : TONES[theme][kind];
    return isCode || kind === "group" ? varied(theme, tone, frames.name[frame]) : plain(tone);
  };
  const fill = (frame: number): Colour => (fills[frame] < 0 ? (fills[frame] = worked(frame)) : fills[frame]);
  const change = (mark: Mark) => plain(CHANGES[theme][mark]);
  const changes = { noise: change("noise"), more: change("more"), less: change("less"), new: change("new"), gone: change("gone") };
  return theme === "light"
    ? {
        fill,
        changes,
        text: "#1b1d21",
        background: 0xfbfaf8,
        crowd: 0xe4e0d8,
        match: 0x6d3fc4,
        matchText: "#ffffff",
        outline: "#14161a",
        hatch: "rgb(0 0 0 / 0.10)",
      }
    : {
        fill,
        changes,
        text: "#f3f1ed",
        background: 0x17191d,
        crowd: 0x33363c,
        match: 0xb99aff,
        matchText: "#17131f",
        outline: "#ffffff",
        hatch: "rgb(255 255 255 / 0.10)",
      };
}

/** The kind's plain colour, for the legend. */
export const swatch = (theme: Theme, kind: Kind): string => css(plain(TONES[theme][kind]));

/** A tone, with small differences that tell neighbours apart, the same ones for the same name. */
function varied(theme: Theme, { hue, saturation, lightness }: Tone, name: string): Colour {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  const wobble = (shift: number) => (((hash >>> shift) & 255) / 255) * 2 - 1;
  const lift = theme === "light" ? 3.5 : 2;
  return hsl(hue + 6 * wobble(4), saturation, lightness + lift * wobble(14));
}

/** Kinds that the profile has, in the order of the legend. */
export function kindsIn(frames: Frames): Kind[] {
  const present = new Set(frames.kind);
  return KINDS.filter((kind) => kind !== "root" && kind !== "group" && present.has(kind));
}
