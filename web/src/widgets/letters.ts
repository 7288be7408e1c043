// How wide letters are: asking the canvas for each label would cost more than drawing it.

export class Letters {
  private readonly widths = new Map<string, number>();

  constructor(
    private readonly context: CanvasRenderingContext2D,
    readonly font: string,
  ) {}

  readonly measure = (letter: string): number => {
    const known = this.widths.get(letter);
    if (known !== undefined) return known;
    const font = this.context.font;
    this.context.font = this.font;
    const width = this.context.measureText(letter).width;
    this.context.font = font;
    this.widths.set(letter, width);
    return width;
  };
}
