/** Progress of a long operation on stderr: a bar on a terminal, otherwise a line every 10 s. */
import { duration, paint } from "./output.js";
import { widthOf } from "./wrap.js";

/** Progress of an operation with a known number of steps. */
export interface Progress {
  /** Reports the number of completed steps, and the total if it has changed. */
  update(done: number, total?: number): void;
  /** Draws the final state and ends the line. */
  end(): void;
}

/** Maximum width of the bar in characters. */
const maxBarWidth = 24;
const redrawEveryMs = 100;
const lineEveryMs = 10_000;

/**
 * Creates a progress display.
 *
 * @param unit Unit of the steps, in the plural.
 * @param firstTotal Number of steps.
 * @param start Number of steps completed earlier.
 */
export function startProgress(unit: string, firstTotal: number, start = 0): Progress {
  const { stderr } = process;
  let total = firstTotal;
  const startMs = performance.now();
  let drawnMs = -Infinity;
  let completed = start;

  function text(): string {
    const elapsedS = (performance.now() - startMs) / 1000;
    const rate = (completed - start) / Math.max(elapsedS, 0.001);
    const left = rate > 0 && completed < total ? `, ${duration((total - completed) / rate)} left` : "";
    return `${completed} of ${total} ${unit}, ${Math.round(rate)}/s${left}`;
  }

  function draw(): void {
    drawnMs = performance.now();
    if (stderr.isTTY) {
      stderr.write(`\r\u001b[K${barLine(completed / Math.max(total, 1), text(), widthOf(stderr))}`);
    } else {
      stderr.write(`${text()}\n`);
    }
  }

  return {
    update(done, newTotal = total) {
      completed = done;
      total = newTotal;
      if (performance.now() - drawnMs >= (stderr.isTTY ? redrawEveryMs : lineEveryMs)) {
        draw();
      }
    },
    end() {
      draw();
      if (stderr.isTTY) {
        stderr.write("\n");
      }
    },
  };
}

/**
 * Returns a bar and a text on one line, since a second line would not be redrawn. The bar gets the width that the text
 * leaves; a bar below 4 characters is omitted.
 *
 * @param done Completed part of the operation, 0 to 1.
 */
export function barLine(done: number, text: string, width: number): string {
  const barWidth = Math.min(maxBarWidth, width - text.length - 2);
  if (barWidth < 4) {
    return text.slice(0, width - 1);
  }
  const filled = Math.round(barWidth * Math.min(done, 1));
  return `${"█".repeat(filled)}${paint("dim", "░".repeat(barWidth - filled))} ${text}`;
}
