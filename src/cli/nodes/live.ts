/** Lines on the terminal that are kept up to date where they stand. */
/** Lines that are drawn until they are stopped. */
export interface Drawing {
  stop(): Promise<void>;
}

/** What the lines tell of, as it changes. */
export interface Changes {
  /** Tells of changes until the signal aborts. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => void;
  /** They are drawn anew after this time also when nothing tells of a change. */
  readonly seldomMs: number;
}

/** Changes within this time are drawn as one. */
const togetherMs = 100;

/**
 * Writes the lines, and again over themselves when there is a change, for as long as it is not stopped. On anything but a
 * terminal they are written once.
 */
export async function keepDrawing(
  lines: () => Promise<readonly string[]>,
  { watch, seldomMs }: Changes,
): Promise<Drawing> {
  const { stdout } = process;
  const stopped = new AbortController();
  let drawn = 0;
  let timer: NodeJS.Timeout | undefined;
  let isDrawing = false;
  let hasChanged = false;
  let underWay: Promise<void> = Promise.resolve();

  async function draw(): Promise<void> {
    const current = await lines();
    const up = drawn === 0 ? "" : `\u001b[${drawn}A`;
    stdout.write(`${up}${current.map((line) => `${stdout.isTTY ? "\u001b[2K" : ""}${line}\n`).join("")}`);
    drawn = current.length;
  }

  async function redraw(): Promise<void> {
    isDrawing = true;
    hasChanged = false;
    // A node that does not answer now is drawn another time.
    await draw().catch(() => undefined);
    isDrawing = false;
    drawIn(pauseMs());
  }

  /** A change may have come while it was drawn. */
  function pauseMs(): number {
    return hasChanged ? togetherMs : seldomMs;
  }

  function drawIn(ms: number): void {
    if (!stopped.signal.aborted) {
      timer = setTimeout(() => {
        underWay = redraw();
      }, ms);
    }
  }

  function onChange(): void {
    if (!hasChanged && !isDrawing) {
      clearTimeout(timer);
      drawIn(togetherMs);
    }
    hasChanged = true;
  }

  await draw();
  if (stdout.isTTY) {
    drawIn(seldomMs);
    watch(onChange, stopped.signal);
  }
  return {
    async stop() {
      stopped.abort();
      clearTimeout(timer);
      await underWay;
    },
  };
}
