// A heat map's cells, what they stand for, and how dark they are.

import type { HeatmapAnswer } from "../api/types";
import type { Term } from "./selection";

/** Cells from one corner to the other, both in it. */
export interface Cells {
  readonly column: number;
  readonly row: number;
  readonly toColumn: number;
  readonly toRow: number;
}

const SECOND = 1e9;

export const rowsOf = (map: HeatmapAnswer): number => map.columns[0]?.length ?? 0;

/** The two corners in order, within the map. */
export function cellsBetween(map: HeatmapAnswer, a: readonly [number, number], b: readonly [number, number]): Cells {
  const within = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
  const [columns, rows] = [map.columns.length, rowsOf(map)];
  return {
    column: within(Math.min(a[0], b[0]), columns),
    toColumn: within(Math.max(a[0], b[0]), columns),
    row: within(Math.min(a[1], b[1]), rows),
    toRow: within(Math.max(a[1], b[1]), rows),
  };
}

/** Weight of some cells, and of all that are in the map. */
export function weightIn(map: HeatmapAnswer, { column, row, toColumn, toRow }: Cells): number {
  let sum = 0;
  for (let x = column; x <= toColumn; x++) for (let y = row; y <= toRow; y++) sum += map.columns[x][y];
  return sum;
}

/** The time of columns, in nanoseconds since the start of the recording. */
export function timeOf(map: HeatmapAnswer, { column, toColumn }: Cells, duration: number): { from: number; to: number } {
  const at = (index: number) => map.first_ns + index * map.column_ns;
  return { from: Math.max(0, at(column)), to: Math.min(duration, at(toColumn + 1)) };
}

/** The part of a second that rows stand for, or the lengths of waits. */
export function rangeOf(map: HeatmapAnswer, { row, toRow }: Cells): { from: number; to: number } {
  if (map.rows_from_ns) {
    const from = map.rows_from_ns;
    // Two rows are a doubling.
    return { from: from[row], to: from[toRow + 1] ?? from[toRow] * Math.SQRT2 };
  }
  const length = map.row_ns ?? SECOND;
  return { from: row * length, to: Math.min(SECOND, (toRow + 1) * length) };
}

const seconds = (ns: number): string => String(Number((ns / SECOND).toFixed(6)));

/** What selects the samples of some cells: `A-B@C-D`; of waits, their time alone. */
export function termOf(map: HeatmapAnswer, cells: Cells, duration: number): Term {
  const isAllTime = cells.column === 0 && cells.toColumn === map.columns.length - 1;
  const { from, to } = timeOf(map, cells, duration);
  const whole = isAllTime ? "" : `${seconds(from)}-${seconds(to)}`;
  const isAllRows = cells.row === 0 && cells.toRow === rowsOf(map) - 1;
  if (map.rows_from_ns || isAllRows) return ["time", whole === "" ? "0-" : whole];
  const part = rangeOf(map, cells);
  return ["time", `${whole}@${seconds(part.from)}-${seconds(part.to)}`];
}

/** How dark each cell is, from 0 to 1, column after column: so that one sample can be seen beside a thousand. */
export function shadesOf(map: HeatmapAnswer): { readonly shades: Float32Array; readonly most: number } {
  const rows = rowsOf(map);
  const shades = new Float32Array(map.columns.length * rows);
  const most = map.columns.reduce((most, column) => column.reduce((most, value) => Math.max(most, value), most), 0);
  if (most === 0) return { shades, most };
  map.columns.forEach((column, x) =>
    column.forEach((value, y) => {
      if (value > 0) shades[x * rows + y] = 0.12 + 0.88 * Math.sqrt(value / most);
    }),
  );
  return { shades, most };
}
