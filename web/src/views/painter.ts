// How one box looks.

import { amounts } from "../model/diff";
import { fit, shorter } from "../model/names";
import { isOutside, same, treeOf, type Place } from "../model/scene";
import { Letters } from "../widgets/letters";
import type { Picture } from "./graph";

const PADDING = 5;
/** Narrower boxes bear no text. */
const TEXT_FROM = 24;
const FONTS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

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

  /** Clears the canvas, which is made this size; rows will be shifted down by `shift` pixels. */
  begin(picture: Picture, width: number, height: number, shift: number): void {
    const scale = Math.min(3, devicePixelRatio || 1);
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      this.canvas.width = across;
      this.canvas.height = down;
      this.canvas.style.height = `${height}px`;
    }
    this.picture = picture;
    this.shift = shift;
    this.outlines = [];
    const { context } = this;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = picture.palette.background;
    context.fillRect(0, 0, width, height);
    context.font = this.letters.font;
    context.textBaseline = "middle";
  }

  box(row: number, place: Place, left: number, right: number): void {
    const { context, picture } = this;
    if (!picture) return;
    const { palette, scene, frames } = picture;
    const top = row * this.rowHeight + this.shift;
    // A hair of background keeps neighbours apart.
    const width = Math.max(NARROW, right - left - (right - left > 3 ? 1 : 0));
    const height = this.rowHeight - 1;
    if (place.box < 0) {
      context.globalAlpha = 1;
      context.fillStyle = palette.crowd;
      context.fillRect(left, top, width, height);
      return;
    }
    const frame = treeOf(scene, place.callers).frame[place.box];
    const isMatch = picture.found?.frames[frame] === 1;
    const faint = isOutside(scene, place) ? 0.5 : picture.found && !isMatch ? 0.55 : 1;
    context.globalAlpha = faint;
    const change = amounts(treeOf(scene, place.callers), place.box, picture.swapped);
    context.fillStyle = isMatch ? palette.match : change ? palette.changes[change.mark] : palette.fills[frame];
    this.fill(left, top, width, height);
    if (frames.kind[frame] === "missing" && !isMatch) this.hatch(left, top, width, height);
    if (width >= TEXT_FROM) {
      context.globalAlpha = faint < 1 ? 0.85 : 1;
      context.fillStyle = isMatch ? palette.matchText : palette.text;
      context.fillText(this.label(frames.name[frame], width - 2 * PADDING), left + PADDING, top + height / 2 + 0.5);
    }
    if (same(place, picture.hovered)) this.outlines.push({ line: 1, left, top, width });
    if (same(place, picture.selected)) this.outlines.push({ line: 2, left, top, width });
  }

  /** Outlines the box under the pointer and the selected one, above all others. */
  finish(): void {
    const { context, picture } = this;
    if (!picture) return;
    context.globalAlpha = 1;
    context.strokeStyle = picture.palette.outline;
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

/** No box is drawn narrower: a sliver of half a pixel would be too pale to see. */
const NARROW = 0.75;
