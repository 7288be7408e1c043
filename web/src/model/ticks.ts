// Round times along an axis.

export interface Tick {
  readonly ns: number;
  readonly text: string;
}

const STEPS = [1, 2, 5];
/** Beyond seconds, the steps are those of a clock. */
const LONG = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** At most `most` ticks of a length that begins at `from`, with as few digits as tell them apart. */
export function ticksOf(length: number, most: number, from = 0): Tick[] {
  if (!(length > 0)) return [{ ns: 0, text: "0" }];
  const least = length / Math.max(1, most);
  const step = stepOf(least);
  const ticks: Tick[] = [];
  // A label at the very end would be cut.
  for (let ns = Math.ceil(from / step) * step; ns <= from + length - least * 0.25; ns += step) ticks.push({ ns, text: textOf(ns, step) });
  return ticks;
}

function stepOf(least: number): number {
  if (least > 5e9) {
    const long = LONG.find((seconds) => seconds * 1e9 >= least);
    return long ? long * 1e9 : Math.ceil(least / 86400e9) * 86400e9;
  }
  const power = 10 ** Math.floor(Math.log10(least));
  return (STEPS.find((step) => step * power >= least) ?? 10) * power;
}

function textOf(ns: number, step: number): string {
  if (ns === 0) return "0";
  if (step >= 60e9) {
    const minutes = Math.round(ns / 60e9);
    return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h${minutes % 60 === 0 ? "" : ` ${minutes % 60} min`}`;
  }
  const [unit, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}
