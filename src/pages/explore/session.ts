/** Identity of the reader. The private key exists only in a variable of this page, and is lost with the page. */
import { createIdentity, type IdentityHeaders } from "../../../client/src/identity.js";
import { keyFromPem, keyFromSeed } from "../../../client/src/keys.js";
import { validateSigner, type ValidSigner } from "../../../client/src/signer.js";

/** Session of the reader, signed in or signed out. */
export interface Session {
  /** Public key, 0x and 64 lowercase hex digits; undefined if signed out. */
  readonly publicKey: string | undefined;
  /** Signer of the key; undefined if signed out. */
  readonly signer: ValidSigner | undefined;
  /** Returns the identity headers; none if signed out. */
  headers(): Promise<Partial<IdentityHeaders>>;
  /**
   * Signs in.
   *
   * @param key text of a PEM file, or the 64 hex digits of a seed.
   * @throws TypeError for any other text.
   */
  signIn(key: string): void;
  signOut(): void;
  /** Calls the listener after each sign-in and sign-out. */
  onChange(listener: () => void): void;
}

interface Identity {
  readonly signer: ValidSigner;
  readonly headers: () => Promise<IdentityHeaders>;
}

/**
 * Creates a session that is signed out.
 *
 * @param network returns the hash of the genesis, which is part of each signature.
 */
export function createSession(network: () => Promise<string>): Session {
  let identity: Identity | undefined;
  const listeners: (() => void)[] = [];
  const change = (changed: Identity | undefined): void => {
    identity = changed;
    listeners.forEach((listener) => listener());
  };
  return {
    get publicKey() {
      return identity?.signer.publicKey;
    },
    get signer() {
      return identity?.signer;
    },
    headers: async () => (await identity?.headers()) ?? {},
    signIn(key) {
      const text = key.trim();
      const signer = text.includes("-----") ? keyFromPem(text) : keyFromSeed(text);
      change({ signer: validateSigner(signer), headers: createIdentity(signer, network) });
    },
    signOut: () => change(undefined),
    onChange: (listener) => void listeners.push(listener),
  };
}
