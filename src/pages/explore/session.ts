/** Who looks. A key is kept in a variable of this page, and nowhere else: it is gone when the page is. */
import { createIdentity, type IdentityHeaders } from "../../../client/src/identity.js";
import { keyFromPem, keyFromSeed } from "../../../client/src/keys.js";

/** Whoever has signed in, if anybody has. */
export interface Session {
  /** 0x and 64 lower-case hex digits; undefined for nobody. */
  readonly publicKey: string | undefined;
  /** Headers that prove who asks, none for nobody. */
  headers(): Promise<Partial<IdentityHeaders>>;
  /**
   * Signs in.
   *
   * @param key the text of a PEM file, or the 64 hex digits of a seed.
   * @throws TypeError for a text that is neither.
   */
  signIn(key: string): void;
  signOut(): void;
}

interface Identity {
  readonly publicKey: string;
  readonly headers: () => Promise<IdentityHeaders>;
}

/**
 * Begins without anybody.
 *
 * @param network gives the hash of the genesis that is signed for.
 */
export function createSession(network: () => Promise<string>): Session {
  let identity: Identity | undefined;
  return {
    get publicKey() {
      return identity?.publicKey;
    },
    headers: async () => (await identity?.headers()) ?? {},
    signIn(key) {
      const text = key.trim();
      const signer = text.includes("-----") ? keyFromPem(text) : keyFromSeed(text);
      identity = { publicKey: signer.publicKey, headers: createIdentity(signer, network) };
    },
    signOut() {
      identity = undefined;
    },
  };
}
