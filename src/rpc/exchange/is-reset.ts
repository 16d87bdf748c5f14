import type { Socket } from "node:net";

/**
 * Returns true if the client has reset the connection before its accept. Its requests can be read, but not answered, and
 * it has no address that limits and penalties could apply to. (A Unix socket has no addresses at all.)
 */
export function isReset({ remoteAddress, localAddress }: Socket): boolean {
  return remoteAddress === undefined && localAddress !== undefined;
}
