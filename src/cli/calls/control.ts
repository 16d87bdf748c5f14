/** Client of the control service, for the commands of the operator. */
import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { resolve } from "node:path";
import { InputError } from "../../base/errors/start-error.js";
import { fallbackOf } from "../../config/declare.js";
import { optionsByKey } from "../../config/options.js";
import { controlTokenPath } from "../../config/data-dir-files.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { ControlFlags } from "../usage/flags.js";

const timeoutMs = 10_000;

/**
 * Calls `work` with a client of a service on the control socket or port of a node. Throws ExitError with code 1 and the
 * node's message if the node rejects a call; code 3 if the node is unreachable.
 */
export async function withControl<S extends DescService, T>(
  flags: ControlFlags,
  service: S,
  work: (client: Client<S>) => Promise<T>,
): Promise<T> {
  const address = flags.control ?? fallbackOf(optionsByKey.controlSocket, () => flags.dataDir)!;
  const isPort = /^[^/]*:\d+$/.test(address);
  try {
    const transport = isPort ? await overPort(address, flags.dataDir) : overSocket(resolve(address));
    return await work(createClient(service, transport));
  } catch (error) {
    if (!(error instanceof ConnectError)) {
      throw error;
    }
    const { code, cause, details, rawMessage } = error;
    // Errors of the node carry details.
    if (details.length === 0 && (code === Code.Unavailable || (cause instanceof Error && "errno" in cause))) {
      throw new ExitError(
        `No node responds at ${address}: ${rawMessage}. Start the node; if it runs on this machine, give its --data-dir.`,
        exitCodes.unreachable,
      );
    }
    const { ErrorInfoSchema } = await import("../../../gen/google/rpc/error_details_pb.js");
    const [info] = error.findDetails(ErrorInfoSchema);
    throw new ExitError(`The node rejected the request: ${rawMessage}`, exitCodes.failed, info?.reason);
  }
}

function overSocket(path: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    defaultTimeoutMs: timeoutMs,
    nodeOptions: { createConnection: () => connect(path) },
  });
}

async function overPort(address: string, dataDir: string): Promise<Transport> {
  const path = controlTokenPath(dataDir);
  const token = await readFile(path, "utf8").catch(() => {
    throw new InputError(`The token ${path} cannot be read; give the node's --data-dir.`);
  });
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token.trim()}`);
    return next(request);
  };
  return createGrpcTransport({ baseUrl: `http://${address}`, defaultTimeoutMs: timeoutMs, interceptors: [authorize] });
}
