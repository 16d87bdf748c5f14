/** The networks of the vectors, which nobody runs. */
import { sha256 } from "../../../src/base/crypto/hash.js";

/** A genesis, byte by byte. */
export const genesis = '{"name":"vectors","timestamp":1767225600000,"authorities":[]}\n';

/** Names the network: SHA-256 of the genesis. */
export const network = sha256(genesis);

/** What was signed for it does not fit {@link network}. */
export const otherNetwork = sha256("another genesis");
