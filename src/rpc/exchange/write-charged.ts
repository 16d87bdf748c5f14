import type { Permit } from "../gate.js";
import type { Exchange } from "./exchange.js";

/**
 * Writes a piece of a stream, and holds the room that it takes until it is gone.
 *
 * @param begin begins the answer, where it has not begun: only once there is room, so that there can still be another one.
 * @throws Failure when there is no room
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
