/** A process that runs many commands for test/helpers/nodes/run-cli.ts, because a start of Node.js takes 1 s. */
import { run } from "../../../src/cli/run.js";

/** A command to run. */
export interface HostedCommand {
  readonly args: readonly string[];
  /** Added to the environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

let before: Promise<unknown> = Promise.resolve();
process.on("message", (command: HostedCommand) => {
  before = before.then(async () => process.send!(await execute(command)));
});

/** Runs a command, and captures its output. */
async function execute({ args, env, cwd }: HostedCommand) {
  const output = { stdout: "", stderr: "" };
  const { stdout, stderr } = process;
  const streams = [
    ["stdout", stdout, stdout.write.bind(stdout)],
    ["stderr", stderr, stderr.write.bind(stderr)],
  ] as const;
  for (const [name, stream] of streams) {
    stream.write = (chunk: string | Uint8Array) => {
      output[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
      return true;
    };
  }
  Object.assign(process.env, env);
  process.chdir(cwd);
  try {
    return { code: await run(args), ...output };
  } finally {
    for (const name of Object.keys(env)) {
      Reflect.deleteProperty(process.env, name);
    }
    for (const [, stream, write] of streams) {
      stream.write = write;
    }
  }
}
