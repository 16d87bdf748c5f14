/**
 * Costs of operations, in bytes. A byte stands for 0.05 µs on one core, so 20 MiB are about one second. Costs are rules
 * of the chain: they do not depend on the machine, the database engine or the contents of caches.
 */

export const costs = {
  /** Cost of a leaf: a lookup, a part of the hashes above the leaf, and its rows; 0.7 ms. */
  leaf: 16 * 1024,
  /** Cost of a nullifier that an authority spends without a proof: a lookup and a row; 0.4 ms. */
  nullifier: 8 * 1024,
  /** Cost of a nullifier that is spent with a proof, even if the proof was verified before; 50 ms. */
  proof: 1024 * 1024,
} as const;
