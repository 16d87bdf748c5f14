/** HTTP client of the node, which signs requests with the key of the reader. */
import type { HeadResponse } from "./responses.js";
import { createHttp, type Http } from "./http.js";
import { createSession, type Session } from "./session.js";

export { NodeError, withQuery } from "./http.js";

/** HTTP client of the node that served the page, and the session of the reader. */
export interface ExploredNode extends Http {
  readonly session: Session;
}

/**
 * Creates the client.
 *
 * @param page location of this page, to which the paths of the node are relative.
 */
export function createNode(page: Location): ExploredNode {
  const anonymous = createHttp(page);
  const session = createSession(async () => (await anonymous.fetchJson<HeadResponse>("chain/head")).genesisHash);
  return { ...createHttp(page, async () => ({ ...(await session.headers()) })), session };
}
