/** How much memory a process of Node.js has held at most. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cleanEnvironment, collect } from "../nodes/run-cli.js";

const tell = `process.on("exit", () => process.stderr.write("\\npeak " + process.resourceUsage().maxRSS))`;

/** Runs Node.js to its end; gives MB, and the exit code. What else takes memory, such as coverage, is left out. */
export async function peakMemoryOf(
  args: readonly string[],
): Promise<{ readonly mb: number; readonly code: number | null }> {
  const env = cleanEnvironment({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}` });
  delete env["NODE_V8_COVERAGE"];
  const child = spawn(process.execPath, args, { env });
  const { stderr } = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { mb: Number(/\npeak (\d+)$/.exec(stderr())![1]) / 1000, code };
}
