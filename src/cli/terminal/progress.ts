/** Progress of a long operation on stderr: a bar on a terminal, otherwise a line every 10 s. */
import { duration, paint } from "./output.js";
import { widthOf } from "./wrap.js";

const maxBarWidth = 24;
const redrawEveryMs = 100;
const lineEveryMs = 10_000;

export type Progress = ReturnType<typeof startProgress>;

/** Creates a progress display. */
export function startProgress(unit: string, firstTotal: number, start = 0) {
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
    /** Reports the number of completed steps, and the total if it has changed. */
    update(done: number, newTotal = total): void {
      completed = done;
      total = newTotal;
      if (performance.now() - drawnMs >= (stderr.isTTY ? redrawEveryMs : lineEveryMs)) {
        draw();
      }
    },
    end(): void {
      draw();
      if (stderr.isTTY) {
        stderr.write("\n");
      }
    },
  };
}

/** Creates a progress display with one bar after the other: a change of the unit starts a new one. */
export function startPhases() {
  let phase: { readonly unit: string; readonly bar: Progress } | undefined;
  return {
    update(unit: string, done: number, total: number, start = 0): void {
      if (phase?.unit !== unit) {
        phase?.bar.end();
        phase = { unit, bar: startProgress(unit, total, start) };
      }
      phase.bar.update(done, total);
    },
    end: () => phase?.bar.end(),
  };
}

/**
 * Returns a bar and a text on one line, since a second line would not be redrawn. The bar gets the width that the text
 * leaves; a bar below 4 characters is omitted.
 */
export function barLine(done: number, text: string, width: number): string {
  const barWidth = Math.min(maxBarWidth, width - text.length - 2);
  if (barWidth < 4) {
    return text.slice(0, width - 1);
  }
  const filled = Math.round(barWidth * Math.min(done, 1));
  return `${"█".repeat(filled)}${paint("dim", "░".repeat(barWidth - filled))} ${text}`;
}
