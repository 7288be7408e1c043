// Boxes too narrow for a name, of all rows at once. A canvas asked to fill each of ten thousand slivers takes longer than a frame lasts; here
// they are written into one line of pixels a row, which the canvas then stretches to the row's height.

import type { Colour } from "../widgets/colour";
import { el } from "../widgets/dom";

export class Strips {
  private readonly canvas = el("canvas");
  private readonly context: CanvasRenderingContext2D;
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(this.image.data.buffer);

  constructor() {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
  }

  /** Makes room for so many rows of so many pixels, all of the background. */
  begin(across: number, rows: number, background: Colour): void {
    const [width, height] = [Math.max(1, across), Math.max(1, rows)];
    if (this.image.width !== width || this.image.height < height) {
      [this.canvas.width, this.canvas.height] = [width, height];
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(pixel(background));
  }

  /** Puts a box over what is there, as far as it covers pixels; of `alpha` less than 1 that much is seen. */
  add(row: number, left: number, right: number, colour: Colour, alpha: number): void {
    const { pixels } = this;
    const { width } = this.image;
    const ink = pixel(colour);
    const last = Math.min(width, Math.ceil(right));
    for (let x = Math.max(0, Math.floor(left)); x < last; x++) {
      const at = row * width + x;
      const part = Math.round(256 * alpha * (Math.min(right, x + 1) - Math.max(left, x)));
      pixels[at] = part === 256 ? ink : mixed(pixels[at], ink, part);
    }
  }

  /** Draws a row on a canvas whose unit is the pixel. */
  draw(onto: CanvasRenderingContext2D, row: number, top: number, height: number): void {
    onto.drawImage(this.canvas, 0, row, this.canvas.width, 1, 0, top, this.canvas.width, height);
  }

  /** Has to come before rows are drawn. */
  finish(): void {
    this.context.putImageData(this.image, 0, 0);
  }
}

/** As it is in memory: every machine that has a browser keeps the lowest byte first. */
const pixel = (colour: Colour): number => (0xff000000 | ((colour & 255) << 16) | (colour & 0xff00) | (colour >>> 16)) >>> 0;

/** `part` of 256 over the rest of another, red and blue at once. */
function mixed(under: number, over: number, part: number): number {
  const rest = 256 - part;
  const redBlue = ((under & 0xff00ff) * rest + (over & 0xff00ff) * part + 0x800080) >>> 8;
  const green = ((under & 0xff00) * rest + (over & 0xff00) * part + 0x8000) >>> 8;
  return (0xff000000 | (redBlue & 0xff00ff) | (green & 0xff00)) >>> 0;
}
