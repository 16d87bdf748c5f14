/** Progress of long work on stderr: a bar where somebody looks, a line now and then where nobody does. */
import { duration, paint } from "./output.js";
import { widthOf } from "./wrap.js";

/** Progress of work with a known number of steps. */
export interface Progress {
  /** Tells how many steps are done, and of how many, where that has changed. */
  update(done: number, total?: number): void;
  /** Ends the bar. */
  end(): void;
}

const maxBar = 24;
const redrawEveryMs = 100;
const lineEveryMs = 10_000;

/**
 * Starts to tell of progress.
 *
 * @param unit what is counted, in the plural.
 * @param firstTotal how many steps there are.
 * @param start how many steps were done before.
 */
export function startProgress(unit: string, firstTotal: number, start = 0): Progress {
  const { stderr } = process;
  let total = firstTotal;
  const startMs = performance.now();
  let drawnMs = -Infinity;
  let last = start;

  function text(): string {
    const elapsedS = (performance.now() - startMs) / 1000;
    const rate = (last - start) / Math.max(elapsedS, 0.001);
    const left = rate > 0 && last < total ? `, ${duration((total - last) / rate)} left` : "";
    return `${last} of ${total} ${unit}, ${Math.round(rate)}/s${left}`;
  }

  function draw(): void {
    drawnMs = performance.now();
    if (stderr.isTTY) {
      stderr.write(`\r\u001b[K${barLine(last / Math.max(total, 1), text(), widthOf(stderr))}`);
    } else {
      stderr.write(`${text()}\n`);
    }
  }

  return {
    update(done, newTotal = total) {
      last = done;
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

/** A bar and a text on one line, which would otherwise not be drawn over: the bar has what the text leaves, if anything. */
export function barLine(done: number, text: string, width: number): string {
  const room = Math.min(maxBar, width - text.length - 2);
  if (room < 4) {
    return text.slice(0, width - 1);
  }
  const filled = Math.round(room * Math.min(done, 1));
  return `${"█".repeat(filled)}${paint("dim", "░".repeat(room - filled))} ${text}`;
}
