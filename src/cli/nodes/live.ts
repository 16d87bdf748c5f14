/** Lines on the terminal that are kept up to date where they stand. */
import { type Repetition, repeat } from "../../base/repeat.js";

/**
 * Writes the lines, and again over themselves, for as long as it is not stopped. On anything but a terminal they are
 * written once.
 */
export async function keepDrawing(lines: () => Promise<readonly string[]>, everyMs: number): Promise<Repetition> {
  const { stdout } = process;
  let drawn = 0;

  async function draw(): Promise<void> {
    const current = await lines();
    const up = drawn === 0 ? "" : `\u001b[${drawn}A`;
    stdout.write(`${up}${current.map((line) => `${stdout.isTTY ? "\u001b[2K" : ""}${line}\n`).join("")}`);
    drawn = current.length;
  }

  await draw();
  return stdout.isTTY ? repeat(draw, everyMs, () => undefined) : { stop: () => Promise.resolve() };
}
