/**
 * Tests every store on every engine. The tests run one after another, because the connections of all their databases
 * at once make each other wait.
 */
import { prepareEngines } from "../helpers/databases/databases.js";
import { testBlocks } from "./stores/blocks.js";
import { testEvidence, testSenders, testWriterLease } from "./stores/chain-rows.js";
import { testListings } from "./stores/listings.js";
import { testMempool } from "./stores/mempool.js";
import { testPeers } from "./stores/peers.js";
import { testPrograms } from "./stores/programs.js";
import { testQueries } from "./stores/queries.js";
import { testNullifiers, testTree } from "./stores/zk.js";

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
