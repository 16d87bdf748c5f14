/** Each protocol, with and without identity, against bare servers that answer the same bytes. */
import { generateKeyPairSync, sign } from "node:crypto";
import { connect } from "node:http2";
import { identityMessage } from "../src/base/identity-message.js";
import { compare, httpAnswer } from "./compare.js";
import { callEmpty, grpcLoad, httpLoad, type HttpRequest, type Load } from "./load.js";
import type { BenchContext, Row } from "./row.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const getHealth = "/gatehouse.health.v1.HealthService/GetHealth";

interface Spoken {
  readonly name: string;
  readonly kind: "http" | "grpc";
  readonly path: string;
  readonly load: Load;
  /** The request whose answer the bare server gives. */
  readonly request: HttpRequest;
}

/** Measures each protocol. */
export async function benchTransports({ node, rounds, seconds, say }: BenchContext): Promise<Row[]> {
  const identity = signedHeaders();
  const plain = (path: string): Spoken => ({
    name: `GET ${path}`,
    kind: "http",
    path,
    load: httpLoad(path),
    request: {},
  });
  const posted = (name: string, type: string, body: Buffer): Spoken => {
    const request = { method: "POST", headers: { "Content-Type": type }, body } as const;
    return { name: `${name} GetVersion`, kind: "http", path: getVersion, load: httpLoad(getVersion, request), request };
  };
  const native = (path: string): Spoken => ({
    name: `gRPC ${path.split("/").at(-1)!}`,
    kind: "grpc",
    path,
    load: grpcLoad(path),
    request: {},
  });
  const emptyEnvelope = Buffer.alloc(5);
  const subjects: Spoken[] = [
    plain("/version"),
    plain("/health"),
    plain("/info"),
    { ...plain("/version"), name: "GET /version, signed", load: httpLoad("/version", { headers: identity }) },
    native(getHealth),
    native(getVersion),
    { ...native(getVersion), name: "gRPC GetVersion, signed", load: grpcLoad(getVersion, identity) },
    posted("Connect JSON", "application/json", Buffer.from("{}")),
    posted("Connect binary", "application/proto", Buffer.alloc(0)),
    posted("gRPC-Web", "application/grpc-web+proto", emptyEnvelope),
  ];
  const rows: Row[] = [];
  for (const subject of subjects) {
    say(subject.name);
    const answer =
      subject.kind === "http"
        ? await httpAnswer(node.port, subject.path, subject.request as RequestInit)
        : await grpcAnswer(node.port, subject.path);
    rows.push(await compare({ ...subject, answers: { [subject.path]: answer } }, node, rounds, seconds));
  }
  return rows;
}

async function grpcAnswer(port: number, path: string): Promise<Uint8Array> {
  const session = connect(`http://127.0.0.1:${port}`);
  const message = await callEmpty(session, path);
  session.close();
  return message;
}

/** The identity headers of a caller, signed once: they serve every request for five minutes. */
function signedHeaders(): Record<string, string> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const identity = `ed25519:0x${publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex")}`;
  const timestamp = String(Date.now());
  const signature = sign(null, identityMessage(identity, timestamp), privateKey);
  return { identity, timestamp, signature: `0x${signature.toString("hex")}` };
}
