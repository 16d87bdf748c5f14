/** What nobody should send, to a node whose application of Express answers all of HTTP/1.1. */
import { testHostileRequests } from "../rpc/hostile-requests.js";

testHostileRequests({ edge: "express" });
