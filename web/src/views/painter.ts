// How one box looks.

import { markOf } from "../model/diff";
import { fit, shorter } from "../model/names";
import { isOutside, treeOf } from "../model/scene";
import { css, type Colour } from "../widgets/colour";
import { Letters } from "../widgets/letters";
import { printable } from "../widgets/printable";
import type { Picture } from "./graph";
import { Strips } from "./strips";

const PADDING = 5;
/** No box is drawn narrower: a sliver of half a pixel would be too pale to see. */
const NARROW = 0.75;
/** Narrower boxes bear no text. */
const TEXT_FROM = 24;
const FONTS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/** A box with a name, which is drawn after all that have none. */
interface Named {
  readonly frame: number;
  readonly fill: Colour;
  readonly alpha: number;
  readonly isMatch: boolean;
  readonly left: number;
  readonly top: number;
  readonly width: number;
}

interface Outline {
  readonly line: number;
  readonly left: number;
  readonly top: number;
  readonly width: number;
}

export class Painter {
  private readonly context: CanvasRenderingContext2D;
  private readonly letters: Letters;
  private readonly forms = new Map<string, readonly string[]>();
  private picture: Picture | undefined;
  private shift = 0;
  private scale = 1;
  /** The row that is the first in view. */
  private first = 0;
  private rows = 0;
  private readonly strips = new Strips();
  private named: Named[] = [];
  private outlines: Outline[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly rowHeight: number,
    fontSize: number,
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    this.letters = new Letters(context, `${fontSize}px ${FONTS}`);
  }

  /** Clears the canvas, which is made this size, for rows from `first` to `last`; they will be shifted down by `shift` pixels. */
  begin(picture: Picture, width: number, height: number, shift: number, first: number, last: number): void {
    const scale = Math.min(3, devicePixelRatio || 1);
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      this.canvas.width = across;
      this.canvas.height = down;
      this.canvas.style.height = `${height}px`;
    }
    this.picture = picture;
    this.shift = shift;
    this.scale = scale;
    this.first = first;
    this.rows = last - first + 1;
    this.named = [];
    this.outlines = [];
    this.strips.begin(across, this.rows, picture.palette.background);
    const { context } = this;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = css(picture.palette.background);
    context.fillRect(0, 0, width, height);
    context.font = this.letters.font;
    context.textBaseline = "middle";
  }

  /** Boxes of a row, from left to right; box -1 stands for a crowd of narrow ones. */
  box(row: number, callers: boolean, box: number, left: number, right: number): void {
    const { picture, scale } = this;
    if (!picture) return;
    const { palette, scene, frames, hovered, selected } = picture;
    // A hair of background keeps neighbours apart.
    const width = Math.max(NARROW, right - left - (right - left > 3 ? 1 : 0));
    if (box < 0) {
      this.strips.add(row - this.first, left * scale, (left + width) * scale, palette.crowd, 1);
      return;
    }
    const tree = treeOf(scene, callers);
    const frame = tree.frame[box];
    const isMatch = picture.found?.frames[frame] === 1;
    const alpha = isOutside(scene, callers, box) ? 0.5 : picture.found && !isMatch ? 0.55 : 1;
    const fill = isMatch ? palette.match : tree.sides ? palette.changes[markOf(tree.sides, box, picture.swapped)] : palette.fill(frame);
    const top = row * this.rowHeight + this.shift;
    if (width >= TEXT_FROM || frames.kind[frame] === "missing") this.named.push({ frame, fill, alpha, isMatch, left, top, width });
    else this.strips.add(row - this.first, left * scale, (left + width) * scale, fill, alpha);
    if (hovered?.box === box && hovered.callers === callers) this.outlines.push({ line: 1, left, top, width });
    if (selected?.box === box && selected.callers === callers) this.outlines.push({ line: 2, left, top, width });
  }

  /** Draws what was collected. */
  finish(): void {
    if (!this.picture) return;
    this.drawStrips(this.picture);
    for (const one of this.named) this.drawNamed(this.picture, one);
    this.drawOutlines(this.picture);
  }

  private drawStrips({ palette }: Picture): void {
    const { context, scale, rowHeight } = this;
    this.strips.finish();
    context.setTransform(1, 0, 0, 1, 0, 0);
    // Stretched as they are, not blurred.
    context.imageSmoothingEnabled = false;
    const edges = Array.from({ length: this.rows }, (_, row) => ((this.first + row) * rowHeight + this.shift) * scale);
    const height = (rowHeight - 1) * scale;
    edges.forEach((top, row) => this.strips.draw(context, row, Math.floor(top), Math.ceil(top + height) - Math.floor(top)));
    // A stretched line ends at whole pixels; where rows do not, the gaps between them cover the rest.
    context.fillStyle = css(palette.background);
    for (const top of edges) if (top % 1 !== 0 || scale % 1 !== 0) context.fillRect(0, top + height, this.canvas.width, scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  private drawNamed({ palette, frames }: Picture, { frame, fill, alpha, isMatch, left, top, width }: Named): void {
    const { context } = this;
    const height = this.rowHeight - 1;
    context.globalAlpha = alpha;
    context.fillStyle = css(fill);
    this.fill(left, top, width, height);
    if (frames.kind[frame] === "missing" && !isMatch) this.hatch(left, top, width, height);
    if (width < TEXT_FROM) return;
    context.globalAlpha = alpha < 1 ? 0.85 : 1;
    context.fillStyle = isMatch ? palette.matchText : palette.text;
    context.fillText(this.label(printable(frames.name[frame]), width - 2 * PADDING), left + PADDING, top + height / 2 + 0.5);
  }

  /** Outlines the box under the pointer and the selected one, above all others. */
  private drawOutlines({ palette }: Picture): void {
    const { context } = this;
    context.globalAlpha = 1;
    context.strokeStyle = palette.outline;
    for (const { line, left, top, width } of this.outlines) {
      context.lineWidth = line;
      context.strokeRect(left + line / 2, top + line / 2, Math.max(2, width - line), this.rowHeight - 1 - line);
    }
  }

  private fill(left: number, top: number, width: number, height: number): void {
    const { context } = this;
    // Round corners cost much more than square ones, and are not seen on boxes without a name.
    if (width < TEXT_FROM) {
      context.fillRect(left, top, width, height);
      return;
    }
    context.beginPath();
    context.roundRect(left, top, width, height, 2);
    context.fill();
  }

  /** Diagonal lines: what stands here is no code but the place of code that is missing. */
  private hatch(left: number, top: number, width: number, height: number): void {
    const { context, picture } = this;
    if (!picture) return;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.beginPath();
    for (let x = left - height - ((left - height) % 7); x < left + width; x += 7) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.strokeStyle = picture.palette.hatch;
    context.lineWidth = 2;
    context.stroke();
    context.restore();
  }

  private label(name: string, width: number): string {
    const whole = fit(name, width, this.letters.measure);
    if (whole === name) return whole;
    let forms = this.forms.get(name);
    if (forms === undefined) {
      forms = shorter(name);
      this.forms.set(name, forms);
    }
    let text = "";
    for (const form of forms) {
      text = fit(form, width, this.letters.measure);
      if (text === form) break;
    }
    return text;
  }
}
