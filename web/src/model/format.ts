// Numbers as people read them.

/** `12.3%`; two significant digits below 1 %. */
export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "0%";
  const value = (100 * part) / whole;
  if (value >= 99.95 && part < whole) return "99.9%";
  if (value >= 99.95) return "100%";
  if (value >= 1) return `${value.toFixed(1)}%`;
  if (value >= 0.01) return `${value.toFixed(2)}%`;
  return part > 0 ? "<0.01%" : "0%";
}

/** `1,234,567`. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A weight beside what it is of: time in the unit that suits it, anything else as a number. */
export function weight(value: number, unit: string): string {
  return unit === "ns" ? duration(value) : count(value);
}

/** A difference, with its sign. */
export function signed(difference: number, unit: string): string {
  if (difference === 0) return "0";
  return `${difference < 0 ? "−" : "+"}${weight(Math.abs(difference), unit)}`;
}

export function duration(ns: number): string {
  if (ns >= 120e9) {
    const seconds = Math.round(ns / 1e9);
    return seconds >= 7200
      ? `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
      : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(ns >= 100e6 ? 0 : 1)} ms`;
  if (ns >= 1e3) return `${(ns / 1e3).toFixed(0)} µs`;
  return `${count(ns)} ns`;
}

/** `2026-11-21 10:04 UTC`. */
export function date(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
