/**
 * What operations cost, in bytes: one stands for a twentieth of a microsecond of one core, so that 20 MiB are about a
 * second. They are rules of the chain, and do not depend on the machine, the engine or what is in a cache.
 */

export const costs = {
  /** A leaf: a look for it, its part of the hashes above it, its rows; 0.7 ms. */
  leaf: 16 * 1024,
  /** A nullifier that an authority spends: a look for it, its row; 0.4 ms. */
  nullifier: 8 * 1024,
  /** A nullifier that is spent with a proof, whether that was verified before or not; 50 ms. */
  proof: 1024 * 1024,
} as const;
