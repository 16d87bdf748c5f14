import type { Permit } from "../gate.js";
import type { Exchange } from "./exchange.js";

/**
 * Writes a piece of a stream, and reserves its bytes until the piece is sent.
 *
 * @param begin starts the response if it has not started. Called after the reservation, so that an error response is
 * still possible.
 * @throws RpcError if no bytes can be reserved.
 */
export async function writeCharged(
  exchange: Pick<Exchange, "isClosed" | "write">,
  lease: Pick<Permit, "reserveResponseBytes" | "releaseResponseBytes">,
  piece: Uint8Array,
  begin: () => void,
): Promise<void> {
  lease.reserveResponseBytes(piece.length);
  begin();
  if (!exchange.isClosed) {
    await exchange.write(piece);
  }
  lease.releaseResponseBytes(piece.length);
}
