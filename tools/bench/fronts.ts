/**
 * Measures both front ends of the node, and common web frameworks with the same responses, each against a bare server.
 */
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createNodeKey, nodeKeyPath } from "../../src/base/crypto/node-key.js";
import { makeBlocks, programOf, withChain } from "./blocks.js";
import { compareBuilds, httpAnswer } from "./compare.js";
import type { FrontKind } from "./front-server.js";
import { grpcCall } from "./http2-client.js";
import { http2Load, httpLoad, type HttpRequest, type Load } from "./load.js";
import type { NodeBench, Row } from "./row.js";
import { type ServerProcess, startFront, startGatehouse } from "./server-process.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const json: HttpRequest = { method: "POST", headers: { "content-type": "application/json" }, body: Buffer.from("{}") };

interface Asked {
  readonly name: string;
  readonly path: string;
  readonly load: Load;
  readonly fronts: readonly FrontKind[];
  readonly request?: HttpRequest;
}

export async function benchFronts({ directory, rounds, seconds, say }: NodeBench): Promise<Row[]> {
  const dirs = ["compiled", "express"].map((name) => join(directory, `front-${name}`));
  await mkdir(dirs[0]!, { mode: 0o700 });
  const key = await createNodeKey(nodeKeyPath(dirs[0]!));
  const genesis = join(directory, "front-genesis.json");
  const genesisText = JSON.stringify({ name: "fronts", authorities: [key.publicKey] });
  await writeFile(genesis, genesisText);
  await withChain(join(dirs[0]!, "gatehouse.sqlite"), genesisText, key, (chain) =>
    makeBlocks(chain, key, {
      count: 1,
      transactions: 1,
      operationOf: (n) => programOf(n, JSON.stringify({ text: "x".repeat(1_000) })),
    }),
  );
  await cp(dirs[0]!, dirs[1]!, { recursive: true });
  const start = (edge: string, dir: string): Promise<ServerProcess> =>
    startGatehouse(["--genesis", genesis, "--allow-private-peers", "--edge", edge, "--data-dir", dir]);
  const [compiled, express] = await Promise.all([start("compiled", dirs[0]!), start("express", dirs[1]!)]);
  try {
    const found = await httpAnswer(compiled.port, "/storage-program/search?q=program%201&exact=true");
    const { programs } = JSON.parse(Buffer.from(found).toString()) as { programs: { storageAddress: string }[] };
    const program = `/storage-program/${programs[0]!.storageAddress}`;
    const plain = (name: string, path: string): Asked => ({
      name,
      path,
      load: httpLoad(path),
      fronts: ["fastify", "express"],
    });
    const asked: readonly Asked[] = [
      plain("GET /version", "/version"),
      plain("GET /health", "/health"),
      plain("a program of 1 KB", program),
      {
        ...{ name: "Connect JSON GetVersion", path: getVersion, request: json, load: httpLoad(getVersion, json) },
        fronts: ["connect-express", "connectNodeAdapter"],
      },
    ];
    const rows: Row[] = [];
    for (const one of asked) {
      const { name, path, load, fronts, request } = one;
      const body = await httpAnswer(compiled.port, path, request as RequestInit);
      const baselines = [{ kind: "http" as const, answers: { [path]: body } }];
      const measure = async (what: string, server: ServerProcess): Promise<void> => {
        say(`${name}: ${what}`);
        rows.push(
          ...(await compareBuilds({ name: `${name}: ${what}`, load, baselines }, { after: server }, rounds, seconds)),
        );
      };
      await measure("compiled", compiled);
      await measure("--edge express", express);
      for (const kind of fronts) {
        await withFront(kind, { [path]: body }, (server) => measure(kind, server));
      }
    }
    const load = http2Load(grpcCall(getVersion, {}));
    const baselines = [{ kind: "grpc" as const, answers: { [getVersion]: await versionMessage(compiled.port) } }];
    const measure = async (what: string, after: ServerProcess): Promise<void> =>
      void rows.push(
        ...(await compareBuilds({ name: `gRPC GetVersion: ${what}`, load, baselines }, { after }, rounds, seconds)),
      );
    say("gRPC GetVersion");
    await measure("compiled", compiled);
    await withFront("connectNodeAdapter, h2", {}, (server) => measure("connectNodeAdapter", server));
    return rows;

    async function withFront(
      kind: FrontKind,
      answers: Readonly<Record<string, Uint8Array>>,
      run: (server: ServerProcess) => Promise<void>,
    ): Promise<void> {
      const server = await startFront(kind, { ...answers, version: await versionMessage(compiled.port) });
      try {
        await run(server);
      } finally {
        await server.stop();
      }
    }
  } finally {
    await Promise.all([compiled.stop(), express.stop()]);
  }
}

async function versionMessage(port: number): Promise<Uint8Array> {
  const request = { method: "POST", headers: { "content-type": "application/proto" }, body: new Uint8Array() };
  return await httpAnswer(port, getVersion, request);
}
