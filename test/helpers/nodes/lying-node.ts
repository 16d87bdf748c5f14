/** A dishonest node: forwards requests to another node, and changes its proofs. */
import { clone, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createServer, request as requestHttp, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import {
  type GetProofRequest,
  GetProofRequestSchema,
  type GetProofResponse,
  GetProofResponseSchema,
  type ObjectState,
  type ProgramState,
} from "../../../gen/gatehouse/state/v1/state_pb.js";
import { createProver, signHead, signHeader } from "../../../tools/docs/vectors/state.js";
import { type TestKey, testKey } from "../chain/keys.js";
import type { Teardown } from "./teardown.js";
import { testNetwork } from "../chain/transactions.js";

/** Replaces the response, which it may change; the response is empty if the node rejects the request. */
export type Lie = (
  answer: GetProofResponse,
  asked: GetProofRequest,
  askNode: (asked: GetProofRequest) => Promise<GetProofResponse>,
) => GetProofResponse | Promise<GetProofResponse>;

/** A running dishonest node. */
export type LyingNode = Awaited<ReturnType<typeof startLyingNode>>;

const proofPath = "/gatehouse.state.v1.StateService/GetProof";

/** Starts a dishonest node in front of the node at a port. */
export async function startLyingNode(t: Teardown, nodePort: number) {
  let lie: Lie | undefined;
  let asked = 0;
  const askNode = async (question: GetProofRequest): Promise<GetProofResponse> => {
    const body = Buffer.from(toBinary(GetProofRequestSchema, question));
    const { bytes } = await exchange(nodePort, proofPath, "POST", { "content-type": "application/proto" }, body);
    return fromBinary(GetProofResponseSchema, bytes);
  };
  const server = createServer((request, response) => {
    void (async () => {
      const body = await buffer(request);
      const { "accept-encoding": _, host: __, ...headers } = request.headers;
      const answer = await exchange(nodePort, request.url!, request.method!, headers, body);
      let { status, bytes } = answer;
      const { "content-length": ___, ...rest } = answer.headers;
      if (request.url === proofPath) {
        asked++;
        if (lie !== undefined) {
          const question = fromBinary(GetProofRequestSchema, body);
          const original = status === 200 ? bytes : Buffer.alloc(0);
          const changed = await lie(fromBinary(GetProofResponseSchema, original), question, askNode);
          [status, bytes] = [200, Buffer.from(toBinary(GetProofResponseSchema, changed))];
          rest["content-type"] = "application/proto";
        }
      }
      response.writeHead(status, { ...rest, "content-length": bytes.length }).end(bytes);
    })().catch(() => response.destroy());
  });
  const port = await listen(t, server);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    /** Sets the change of proofs; without one, the node is honest. */
    lie: (next?: Lie): void => void (lie = next),
    /** The number of requested proofs. */
    get asked() {
      return asked;
    },
  };
}

/** Headers of a message. */
type Headers = Record<string, string | string[] | undefined>;

/** Binds a free port of 127.0.0.1 until the end of the test. */
export async function listen(t: Teardown, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

export function exchange(port: number, path: string, method: string, headers: Headers, body: Buffer) {
  return new Promise<{ status: number; headers: Headers; bytes: Buffer }>((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, method, headers: { ...headers }, agent: false };
    const request = requestHttp(options, (response) => {
      buffer(response).then((bytes) => {
        const { connection: _, "transfer-encoding": __, ...rest } = response.headers;
        resolve({ status: response.statusCode!, headers: rest, bytes });
      }, reject);
    });
    request.on("error", reject).end(body);
  });
}

/** Part of the error message for a proof that contradicts the root. */
const wrongRoot = /does not lead to the root/;

/**
 * Every kind of false proof, for a field with a value, with part of the error of its verification. The key of the
 * authority is {@link testKey} 1.
 */
export function kindsOfLies(
  otherProgram: string,
): { readonly name: string; readonly lie: Lie; readonly found: RegExp }[] {
  const ofField =
    (change: (object: ObjectState) => void): Lie =>
    (answer) => {
      change(objectOf(answer));
      return answer;
    };
  const lies: readonly (readonly [name: string, lie: Lie, found?: RegExp])[] = [
    ["another value", ofField(({ fields }) => (fields[0]!.field!.value = '"forged"'))],
    ["absence of the field", ofField(({ fields }) => (fields[0]!.field = undefined))],
    [
      "absence of the program",
      (answer) => {
        answer.program!.state = { case: undefined };
        return answer;
      },
    ],
    [
      "an old head",
      (_, asked) => forged(asked, { timestampMs: BigInt(Date.now() - 3_600_000) }),
      /was signed 3600 s ago|has seen block/,
    ],
    ["another network", (_, asked) => forged(asked, { genesisHash: `0x${"1".repeat(64)}` }), /for another network/],
    ["another key", (_, asked) => forged(asked, {}, testKey(5)), /No authority .* has signed/],
    ["a cut path", ofField(({ fields: [field] }) => (field!.path!.siblings = field!.path!.siblings.slice(32)))],
    [
      "swapped fields",
      async (answer, asked, askNode) => {
        const other = await askNode(create(GetProofRequestSchema, { ...asked, fields: ["other"] }));
        const [field] = objectOf(other).fields;
        objectOf(answer).fields = [{ ...field!, name: asked.fields[0]! }];
        return answer;
      },
    ],
    [
      "a forged header",
      (answer, asked) => Object.assign(clone(GetProofResponseSchema, answer), { header: forged(asked, {}).header }),
      /No authority .* has signed/,
    ],
    [
      "the right proof of another program",
      async (_, asked, askNode) => {
        const other = await askNode(create(GetProofRequestSchema, { ...asked, storageAddress: otherProgram }));
        other.program!.storageAddress = asked.storageAddress!;
        return other;
      },
    ],
  ];
  return lies.map(([name, lie, found = wrongRoot]) => ({ name, lie, found }));
}

interface ForgedHeader {
  readonly number?: bigint;
  readonly timestampMs?: bigint;
  readonly genesisHash?: string;
}

/** Proves an empty state, in a block that this key has signed. */
export function forged(asked: GetProofRequest, fields: ForgedHeader, signer: TestKey = testKey(1)): GetProofResponse {
  const prover = createProver({});
  const { number = 1n, timestampMs = BigInt(Date.now()), genesisHash = testNetwork } = fields;
  const common = { number, timestampMs, genesisHash };
  const { hash, ...signed } = signHeader(signer, { ...common, stateRoot: prover.root });
  return Object.assign(prover.prove(asked), signed, { head: signHead(signer, { ...common, hash }) });
}

function objectOf(answer: GetProofResponse): ObjectState {
  const { document } = answer.program!.state.value as ProgramState;
  return document.value as ObjectState;
}
