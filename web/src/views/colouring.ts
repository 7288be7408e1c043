// The colours of the picture and the legend that explains them: by kind of code or by file, in the theme of the page, or on paper.

import type { Frames } from "../model/decode";
import type { Tree } from "../model/tree";
import { byId } from "../widgets/dom";
import { paletteFor, type Palette } from "../widgets/palette";
import type { Theme } from "../widgets/theme";
import { heaviestFiles, showLegend, showWidths } from "./legend";

export class Colouring {
  palette: Palette;
  /** Whether colours say which file code is in, not what kind it is of. */
  byFile = false;
  /** Of a differential picture: whether widths are of all code, not of what changed. */
  all = false;

  constructor(
    private readonly frames: Frames,
    private readonly tree: Tree,
    theme: Theme,
  ) {
    this.palette = this.paletteOf(theme);
  }

  /** Takes on a theme, and what colours say. */
  dress(theme: Theme): void {
    this.palette = this.paletteOf(theme);
    showLegend(byId("legend"), this.frames, this.tree, theme, this.byFile);
    if (this.tree.sides) showWidths(byId("reading"), this.all);
  }

  /** Paper is white. */
  dressForPaper(): void {
    this.dress("light");
    this.palette = { ...this.palette, background: 0xffffff };
  }

  private paletteOf(theme: Theme): Palette {
    const files = this.byFile ? heaviestFiles(this.frames, this.tree).map(({ file }) => file) : undefined;
    return paletteFor(theme, this.frames, files);
  }
}
