/** Hostile requests to a node whose Express application serves all of HTTP/1.1. */
import { testHostileRequests } from "../rpc/hostile-requests.js";

testHostileRequests({ edge: "express" });
