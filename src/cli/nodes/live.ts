/** Terminal output that is updated in place. */

/** Output that is redrawn until it is stopped. */
export interface Drawing {
  stop(): Promise<void>;
}

/** Occasions for redrawing the output. */
export interface Changes {
  /** Calls `onChange` at each change until the signal aborts. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => void;
  /** Time after which the output is redrawn even without a change. */
  readonly maxPauseMs: number;
}

/** Time in which changes are collected into one drawing. */
const batchMs = 100;

/**
 * Writes the lines, and overwrites them after each change until stopped. Writes them once if stdout is not a terminal.
 */
export async function drawPeriodically(
  lines: () => Promise<readonly string[]>,
  { watch, maxPauseMs }: Changes,
): Promise<Drawing> {
  const { stdout } = process;
  const stopped = new AbortController();
  let drawnLines = 0;
  let timer: NodeJS.Timeout | undefined;
  let isDrawing = false;
  let hasChanged = false;
  let redrawing: Promise<void> = Promise.resolve();

  async function draw(): Promise<void> {
    const current = await lines();
    const cursorUp = drawnLines === 0 ? "" : `\u001b[${drawnLines}A`;
    stdout.write(`${cursorUp}${current.map((line) => `${stdout.isTTY ? "\u001b[2K" : ""}${line}\n`).join("")}`);
    drawnLines = current.length;
  }

  async function redraw(): Promise<void> {
    isDrawing = true;
    hasChanged = false;
    // If the lines are not available now, try again at the next drawing.
    await draw().catch(() => undefined);
    isDrawing = false;
    drawIn(pauseMs());
  }

  /** Returns the pause before the next drawing: short if a change arrived during the last one. */
  function pauseMs(): number {
    return hasChanged ? batchMs : maxPauseMs;
  }

  function drawIn(ms: number): void {
    if (!stopped.signal.aborted) {
      timer = setTimeout(() => {
        redrawing = redraw();
      }, ms);
    }
  }

  function onChange(): void {
    if (!hasChanged && !isDrawing) {
      clearTimeout(timer);
      drawIn(batchMs);
    }
    hasChanged = true;
  }

  await draw();
  if (stdout.isTTY) {
    drawIn(maxPauseMs);
    watch(onChange, stopped.signal);
  }
  return {
    async stop() {
      stopped.abort();
      clearTimeout(timer);
      await redrawing;
    },
  };
}
