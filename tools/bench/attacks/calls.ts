/** Encoded gRPC calls. */
import { create, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { grpcMessage } from "../../../test/helpers/wire/http2-frames.js";
import { type AttackCounts, openSocket, repeat } from "./attack.js";

/** Encoded call. */
export interface Call {
  readonly path: string;
  readonly body: Buffer;
}

/** Creates a gRPC call of this method. */
export function callOf<M extends DescMethod>(method: M, message: MessageInitShape<M["input"]>): Call {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    body: grpcMessage(toBinary(method.input, create(method.input, message as never))),
  };
}

/** Creates a request for a full program. */
export const readProgram = (program: string): Call =>
  callOf(StorageService.method.getProgramData, { storageAddress: program });

/** Headers that open the stream of a call. */
export function headersOf({ path }: Call): OutgoingHttpHeaders {
  return { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
}

/** Flow-control window for a large response. */
const windowBytes = 2 * 1024 ** 2;

/** Sends calls over one session, with a limit on concurrent streams. Counts successful and failed calls. */
export async function callAgain(port: number, signal: AbortSignal, call: Call, streams: number): Promise<AttackCounts> {
  const settings = { initialWindowSize: windowBytes };
  const createConnection = () => openSocket(port);
  const session = connect("http://127.0.0.1", { createConnection, settings }).on("error", () => undefined);
  session.once("connect", () => session.setLocalWindowSize(streams * windowBytes));
  signal.addEventListener("abort", () => session.destroy());
  let [answered, refused] = [0, 0];
  await repeat(streams, signal, async () => {
    if (session.destroyed) {
      await sleep(50);
      return;
    }
    const stream = session.request(headersOf(call)).on("error", () => undefined);
    let status: unknown;
    stream.on("trailers", (trailers: IncomingHttpHeaders) => (status = trailers["grpc-status"]));
    stream.resume().end(call.body);
    await new Promise((resolve) => stream.once("close", resolve));
    if (status === "0") {
      answered++;
    } else if (!signal.aborted) {
      refused++;
      await sleep(10);
    }
  });
  return { answered, refused };
}
