/** Hostile requests to the compiled routes. */
import { testHostileRequests } from "./hostile-requests.js";

testHostileRequests({});
