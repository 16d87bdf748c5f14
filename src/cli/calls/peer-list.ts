/** Reader of the peer list of a running node. */
import { ExitError, exitCodes } from "../usage/errors.js";
import { requestOk, type NodeRequest } from "./request-node.js";

/** Peer in the format of /peerlist. */
export interface PeerBody {
  readonly connection: { string: string };
  readonly identity: string;
  readonly verification: { status: boolean; message: string | null };
  readonly sync: { status: boolean; block: number | null };
  readonly status: { online: boolean; timestamp: number | null; ready: boolean };
}

/** Limit on the number of requests for one list, so that a hostile node cannot respond forever. */
const maxPages = 64;

/**
 * Returns all peers that the node knows. A long list takes several requests.
 *
 * @throws ExitError with code 1 if the node rejects a request or its list does not end; code 3 as `requestNode`.
 */
export async function listPeers(node: string, request?: NodeRequest): Promise<PeerBody[]> {
  const peers: PeerBody[] = [];
  for (let page = 0; page < maxPages; page++) {
    const text = await requestOk(node, `/peerlist?offset=${peers.length}`, request);
    const part = JSON.parse(text) as PeerBody[];
    if (part.length === 0) {
      return peers;
    }
    peers.push(...part);
  }
  throw new ExitError(`The peer list of ${node} has more than ${maxPages} pages.`, exitCodes.failed);
}
