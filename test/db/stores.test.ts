/**
 * Tests every store on every engine. The tests run one after another, because the connections of all their databases
 * at once make each other wait.
 */
import { prepareEngines } from "../helpers/databases/databases.js";
import { testBlocks } from "./stores/blocks.js";
import { testEvidence } from "./stores/evidence.js";
import { testListings } from "./stores/listings.js";
import { testMempool } from "./stores/mempool.js";
import { testNullifiers } from "./stores/nullifiers.js";
import { testPeers } from "./stores/peers.js";
import { testPrograms } from "./stores/programs.js";
import { testQueries } from "./stores/queries.js";
import { testSenders } from "./stores/senders.js";
import { testTree } from "./stores/tree.js";
import { testWriterLease } from "./stores/writer-lease.js";

const engines = await prepareEngines();

for (const engine of engines.names) {
  for (const declareTests of [
    testQueries,
    testBlocks,
    testEvidence,
    testListings,
    testMempool,
    testSenders,
    testPrograms,
    testTree,
    testNullifiers,
    testPeers,
    testWriterLease,
  ]) {
    declareTests(engine, (t) => engines.open(t, engine));
  }
}
