/** The Dockerfile: its instructions are executed without Docker. */
import test from "ava";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, symlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { basename, dirname, join, resolve } from "node:path";
import { makeCertificate, startTestNode } from "../helpers/nodes/start-node.js";
import { configOf, defaults, linkProductionPackages } from "../helpers/process/deployment.js";
import { run } from "../helpers/process/programs.js";
import { cleanEnvironment } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

interface Instruction {
  readonly name: string;
  readonly text: string;
}

const instructions = (await readFile("deploy/Dockerfile", "utf8"))
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => line !== "")
  .map((line): Instruction => {
    const [name = "", ...words] = line.split(" ");
    return { name, text: words.join(" ") };
  });
const starts = instructions.flatMap(({ name }, index) => (name === "FROM" ? [index] : []));
const [build, runtime] = starts.map((start, i) => instructions.slice(start, starts[i + 1])) as [
  Instruction[],
  Instruction[],
];

const textsOf = (stage: readonly Instruction[], name: string): string[] =>
  stage.filter((instruction) => instruction.name === name).map(({ text }) => text);

/** Sources and destination of each COPY. */
const copies = (stage: readonly Instruction[]): { from: string | undefined; sources: string[]; to: string }[] =>
  textsOf(stage, "COPY").map((text) => {
    const words = text.split(/\s+/);
    const from = /^--from=(.*)$/.exec(words[0]!)?.[1];
    const paths = from === undefined ? words : words.slice(1);
    return { from, sources: paths.slice(0, -1), to: paths.at(-1)! };
  });

/** Copies like COPY: the content of a directory, or a file into a directory. */
async function copy(source: string, to: string): Promise<void> {
  const isInto = to.endsWith("/");
  await mkdir(isInto ? to : dirname(to), { recursive: true });
  await cp(source, isInto ? join(to, basename(source)) : to, { recursive: true });
}

const env = Object.fromEntries(
  textsOf(runtime, "ENV").flatMap((text) => text.split(/\s+/).map((pair) => pair.split("=") as [string, string])),
);
const [workDir] = textsOf(build, "WORKDIR") as [string];
const entrypoint = JSON.parse(textsOf(runtime, "ENTRYPOINT")[0]!) as string[];
const healthCheck = JSON.parse(/CMD (\[.*\])/.exec(textsOf(runtime, "HEALTHCHECK")[0]!)![1]!) as string[];

/** Runs the health check with these variables, and returns its exit code. */
async function checkHealth(variables: Readonly<Record<string, string>>): Promise<number | null> {
  const [program, ...args] = healthCheck;
  const child = spawn(program!, args, { env: cleanEnvironment({ ...env, ...variables }), stdio: "ignore" });
  const [code] = (await once(child, "close")) as [number | null];
  return code;
}

test("the sources of the build exist, and .dockerignore allows exactly them", async (t) => {
  const patterns = (await readFile(".dockerignore", "utf8")).split("\n").filter((line) => /^[^#]/.test(line));
  const sources = copies(build).flatMap((entry) => entry.sources.map((source) => source.replace(/^\.\//, "")));
  t.true(sources.length > 0);
  for (const source of sources) {
    t.true(existsSync(source), source);
  }
  t.is(patterns[0], "*");
  t.deepEqual(
    patterns
      .slice(1)
      .map((pattern) => pattern.replace(/^!/, ""))
      .sort(),
    sources.sort(),
  );
});

test("each variable is an option, and ports and volume are those of the node", (t) => {
  const config = configOf(env);
  t.is(config.portDrift, "deny");
  const exposed = textsOf(runtime, "EXPOSE").join(" ").split(" ").map(Number);
  t.deepEqual(exposed, [config.rpcPort, config.omniPort]);
  t.deepEqual(exposed, [defaults.rpcPort, defaults.omniPort]);
  t.deepEqual(textsOf(runtime, "VOLUME"), [config.dataDir]);
});

test("both stages use one supported Node.js, and the image does not run as root", async (t) => {
  const { engines } = JSON.parse(await readFile("package.json", "utf8")) as { engines: { node: string } };
  const images = [...textsOf(build, "FROM"), ...textsOf(runtime, "FROM")].map((text) => text.split(" ")[0]!);
  t.is(images.length, 2);
  t.is(images[0], images[1]);
  const major = /^node:(\d+)-/.exec(images[0]!)?.[1];
  t.regex(engines.node, new RegExp(`\\^${major}\\b`));
  t.regex(textsOf(runtime, "USER").at(-1)!, /^[1-9]\d*:[1-9]\d*$/);
});

async function startImage(t: Teardown, app: string, data: string): Promise<{ child: ChildProcess; port: string }> {
  const [program, ...args] = entrypoint;
  const variables = { GATEHOUSE_DATA_DIR: data, GATEHOUSE_RPC_PORT: "0", GATEHOUSE_OMNI_PORT: "0" };
  const child = spawn(program!, args, { cwd: app, env: cleanEnvironment({ ...env, ...variables }) });
  t.teardown(() => child.kill("SIGKILL"));
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const first = once(child.stdout, "data").then(([bytes]) => String(bytes));
  const line = await Promise.race([first, once(child, "close").then(() => Promise.reject(new Error(log)))]);
  const { ports } = JSON.parse(line) as { ports: { rpc: number } };
  return { child, port: String(ports.rpc) };
}

test("the copied files suffice to build and to run, and the health check works", async (t) => {
  const root = await temporaryDirectory(t);
  const [built, image] = [join(root, "build"), join(root, "image")];
  for (const { sources, to } of copies(build)) {
    for (const source of sources) {
      await copy(source, to === "./" ? `${built}/` : join(built, to));
    }
  }
  await symlink(resolve("node_modules"), join(built, "node_modules"));
  t.true(textsOf(build, "RUN").some((text) => text.includes("npm run build")));
  await run("npm", ["run", "build"], { cwd: built });

  for (const { from, sources, to } of copies(runtime)) {
    t.is(from, "build");
    for (const source of sources) {
      const path = source.replace(`${workDir}/`, "");
      if (path === "node_modules") {
        await linkProductionPackages(image);
      } else {
        await copy(join(built, path), to === "./" ? `${image}/` : join(image, to));
      }
    }
  }
  const { child, port } = await startImage(t, image, join(root, "data"));
  t.is(await checkHealth({ GATEHOUSE_RPC_PORT: port }), 0);
  child.kill("SIGTERM");
  const [code] = (await once(child, "close")) as [number | null];
  t.is(code, 0);
  t.is(await checkHealth({ GATEHOUSE_RPC_PORT: port }), 1);
});

test("the health check works for a node with TLS", async (t) => {
  const { cert, key } = await makeCertificate(await temporaryDirectory(t));
  const node = await startTestNode(t, { "tls-cert": cert, "tls-key": key });
  t.is(await checkHealth({ GATEHOUSE_RPC_PORT: String(node.port), GATEHOUSE_TLS_CERT: cert }), 0);
});

const [baseImage = ""] = textsOf(build, "FROM")[0]!.split(" ");
const testBuilt = testUnless(whyNot("docker", "info") ?? whyNot("docker", "image", "inspect", baseImage));

testBuilt("the image builds, and its container is healthy", async (t) => {
  t.timeout(900_000);
  const tag = `gatehouse-test-${process.pid}`;
  await run("docker", ["build", "-q", "-f", "deploy/Dockerfile", "-t", tag, "."]);
  t.teardown(() => run("docker", ["image", "rm", "-f", tag]));
  const { stdout } = await run("docker", ["run", "-d", "--rm", tag]);
  const container = stdout.trim();
  t.teardown(() => run("docker", ["stop", container]));
  let status = "starting";
  while (status === "starting") {
    await sleep(500);
    status = (await run("docker", ["inspect", "-f", "{{.State.Health.Status}}", container])).stdout.trim();
  }
  t.is(status, "healthy");
});
