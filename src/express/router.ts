import { Router } from "express";
import type { RunningNode } from "../node/node.js";

/** A router that gives every request to a node, whatever its path and method, and hands nothing on. */
export function createNodeRouter(node: Pick<RunningNode, "handle">): Router {
  return Router().use((request, response) => node.handle(request, response));
}
