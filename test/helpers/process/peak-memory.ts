/** The peak memory of a Node.js process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cleanEnvironment, collect } from "../nodes/run-cli.js";

const tell = `process.on("exit", () => process.stderr.write("\\npeak " + process.resourceUsage().maxRSS))`;

/** Runs Node.js, without coverage. Returns the peak memory in MB, and the exit code. */
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
