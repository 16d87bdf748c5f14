/**
 * Measures both front ends of the node, and common web frameworks with the same responses, each against a bare server.
 */
import { deepEqual } from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { makeBlocks, makeHome, programOf, withChain } from "../blocks.js";
import { compareBuilds, httpAnswer } from "../load/compare.js";
import type { FrontKind } from "../servers/front-server.js";
import { grpcCall } from "../load/http2-client.js";
import { http2Load, httpLoad, type HttpRequest, type Load } from "../load/load.js";
import type { BenchSettings, Row } from "../row.js";
import { type ServerProcess, startFront, startGatehouse } from "../servers/server-process.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const json: HttpRequest = { method: "POST", headers: { "content-type": "application/json" }, body: Buffer.from("{}") };

interface Asked {
  readonly name: string;
  readonly path: string;
  readonly load: Load;
  readonly fronts: readonly FrontKind[];
  readonly request?: HttpRequest;
}

export async function benchFronts({ directory, rounds, seconds, say }: BenchSettings): Promise<Row[]> {
  const { dir, flags, url } = await makeHome(join(directory, "front-compiled"));
  const copy = join(directory, "front-express");
  await withChain(url, (chain) =>
    makeBlocks(chain, {
      count: 1,
      transactions: 1,
      operationOf: (n) => programOf(n, JSON.stringify({ text: "x".repeat(1_000) })),
    }),
  );
  await cp(dir, copy, { recursive: true });
  const [compiled, express] = await Promise.all([
    startGatehouse([...flags, "--edge", "compiled"]),
    startGatehouse([...flags, "--edge", "express", "--data-dir", copy]),
  ]);
  try {
    const found = await httpAnswer(compiled.port, "/storage-program/search?q=program%201&exact=true");
    const { programs } = JSON.parse(Buffer.from(found).toString()) as { programs: { storageAddress: string }[] };
    const program = `/storage-program/${programs[0]!.storageAddress}`;
    const plain = (path: string, name = `GET ${path}`): Asked => ({
      name,
      path,
      load: httpLoad(path),
      fronts: ["fastify", "express"],
    });
    const asked: readonly Asked[] = [
      ...["/", "/version", "/info", "/peerlist", "/health"].map((path) => plain(path)),
      plain(program, "a program of 1 KB"),
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
        await withFront(kind, path, { [path]: body }, (server) => measure(kind, server));
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
    await withFront("connectNodeAdapter, h2", getVersion, {}, (server) => measure("connectNodeAdapter", server));
    return rows;

    async function withFront(
      kind: FrontKind,
      path: string,
      answers: Readonly<Record<string, Uint8Array>>,
      run: (server: ServerProcess) => Promise<void>,
    ): Promise<void> {
      const body = answers[path];
      const headers = path === getVersion ? {} : (await plainResponse(compiled.port, path)).headers;
      const version = await versionMessage(compiled.port);
      const server = await startFront(kind, { answers: { ...answers, version }, headers });
      try {
        if (path !== getVersion) {
          const expected = { headers, text: Buffer.from(body!).toString() };
          deepEqual(await plainResponse(server.port, path), expected, `${kind} sends another response.`);
        }
        await run(server);
      } finally {
        await server.stop();
      }
    }
  } finally {
    await Promise.all([compiled.stop(), express.stop()]);
  }
}

/** Returns a response, without the headers that every server of Node.js sends. */
async function plainResponse(port: number, path: string) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  const ofServer = ["connection", "content-length", "date", "keep-alive"];
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !ofServer.includes(name)));
  return { headers, text: await response.text() };
}

async function versionMessage(port: number): Promise<Uint8Array> {
  const request = { method: "POST", headers: { "content-type": "application/proto" }, body: new Uint8Array() };
  return await httpAnswer(port, getVersion, request);
}
