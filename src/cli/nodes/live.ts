/** Terminal output that is updated in place. */
/** Output that is redrawn until it is stopped. */
export interface Drawing {
  stop(): Promise<void>;
}

/** Source of changes, and the maximum time between two drawings. */
export interface Changes {
  /** Calls `onChange` at each change until the signal aborts. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => void;
  /** Time after which the lines are redrawn even without a change. */
  readonly seldomMs: number;
}

/** Changes within this time are drawn together. */
const togetherMs = 100;

/**
 * Writes the lines, and overwrites them after each change until stopped. Writes them once if stdout is not a terminal.
 */
export async function drawPeriodically(
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
    // A node that does not respond now is drawn at the next update.
    await draw().catch(() => undefined);
    isDrawing = false;
    drawIn(pauseMs());
  }

  /** Returns the pause before the next drawing: short if a change arrived during the last one. */
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
