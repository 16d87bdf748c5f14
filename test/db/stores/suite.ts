import type { Database } from "../../../src/db/queries/database.js";
import type { Engine } from "../../../src/db/queries/dialects.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";

/** Declares the tests of a store on an engine; `open` returns a new, migrated database. */
export type StoreSuite = (engine: Engine, open: (t: Teardown) => Promise<Database>) => void;
