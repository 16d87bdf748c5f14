/** Networks of the vectors, which no node runs. */
import { sha256 } from "../../../src/base/crypto/hash.js";

/** Text of a genesis, byte for byte. */
export const genesis = '{"name":"vectors","timestamp":1767225600000,"authorities":[]}\n';

/** Identifier of the network: SHA-256 of the genesis. */
export const network = sha256(genesis);

/** Another network. Signatures for it are invalid on {@link network}. */
export const otherNetwork = sha256("another genesis");
