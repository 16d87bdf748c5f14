import type { Permit } from "../gate.js";
import type { Exchange } from "./exchange.js";

/**
 * Writes a piece of a stream, and reserves its bytes until the piece is sent.
 *
 * @param start starts the response if it has not started. Called after the reservation, so that an error response is
 * still possible.
 * @throws RpcError if no bytes can be reserved.
 */
export async function writeReserved(
  exchange: Pick<Exchange, "isClosed" | "write">,
  permit: Pick<Permit, "reserveResponseBytes" | "releaseResponseBytes">,
  piece: Uint8Array,
  start: () => void,
): Promise<void> {
  permit.reserveResponseBytes(piece.length);
  start();
  if (!exchange.isClosed) {
    await exchange.write(piece);
  }
  permit.releaseResponseBytes(piece.length);
}
