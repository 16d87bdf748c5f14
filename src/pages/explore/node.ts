/** Node that served the page, requested as the reader. */
import type { HeadAnswer } from "./answers.js";
import { createHttp, type Http } from "./http.js";
import { createSession, type Session } from "./session.js";

export { NodeError, withQuery } from "./http.js";

/** Node that served the page. */
export interface ExploredNode extends Http {
  readonly session: Session;
}

/** @param page location of this page, to which the paths of the node are relative. */
export function createNode(page: Location): ExploredNode {
  const anonymous = createHttp(page);
  const session = createSession(async () => (await anonymous.ask<HeadAnswer>("chain/head")).genesisHash);
  return { ...createHttp(page, async () => ({ ...(await session.headers()) })), session };
}
