// Colours as numbers, 0xrrggbb: what can be mixed and written to pixels, and be said in CSS.

export type Colour = number;

/** Degrees, and percent from 0 to 100. */
export function hsl(hue: number, saturation: number, lightness: number): Colour {
  const light = lightness / 100;
  const chroma = (saturation / 100) * Math.min(light, 1 - light);
  const channel = (n: number) => {
    const k = (((n + hue / 30) % 12) + 12) % 12;
    return Math.round(255 * (light - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return (channel(0) << 16) | (channel(8) << 8) | channel(4);
}

export const css = (colour: Colour): string => `#${colour.toString(16).padStart(6, "0")}`;
