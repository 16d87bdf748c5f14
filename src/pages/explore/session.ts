/**
 * Session of the reader, one for all pages of the node. The private key exists only in a variable of the page on which
 * the reader signed in, and is lost with that page. The browser stores identity headers that the key signed in advance:
 * each is valid for five minutes on one network, and permits reading only.
 */
import { type IdentityHeaders, identityHeaders } from "../../../client/src/identity.js";
import { keyFromPem, keyFromSeed } from "../../../client/src/keys.js";
import { isEncryptedPem } from "./write/key-file.js";
import { validateSigner, type ValidSigner } from "../../../client/src/signer.js";

/** Session of the reader, signed in or signed out. */
export interface Session {
  /** Public key, 0x and 64 lowercase hex digits; undefined if signed out. */
  readonly publicKey: string | undefined;
  /** Signer of the key; undefined unless the reader entered the key on this page. */
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
  /** Calls the listener after each sign-in and sign-out, also on other pages. */
  onChange(listener: () => void): void;
}

/** Reader and the headers that were signed in advance, in ascending order of time. */
interface StoredSession {
  readonly publicKey: string;
  readonly passes: readonly IdentityHeaders[];
}

const storageName = "gatehouse.session";
/** Time in milliseconds for which headers are used: half of the time for which the node accepts them. */
const passMs = 150_000;
/** Number of headers that are signed in advance: for an hour. */
const passCount = 24;

/**
 * Creates the session, signed in if another page of this node is.
 *
 * @param network returns the hash of the genesis, which is part of each signature.
 */
export function createSession(network: () => Promise<string>): Session {
  let signer: ValidSigner | undefined;
  let current = readStored();
  /** Network of the node; undefined until the stored headers were compared with it. */
  let known: Promise<string | undefined> | undefined;
  let signing: Promise<void> | undefined;
  const listeners: (() => void)[] = [];

  function change(session: StoredSession | undefined, by?: ValidSigner): void {
    [current, signer, signing] = [session, by, undefined];
    listeners.forEach((listener) => listener());
  }

  function signOut(): void {
    store(undefined);
    change(undefined);
  }

  /** Signs headers for the next hour, and stores them for other pages. */
  async function sign(by: ValidSigner): Promise<void> {
    const hash = await network();
    const nowMs = Date.now();
    const passes: IdentityHeaders[] = [];
    for (let i = 0; i < passCount; i++) {
      passes.push(await identityHeaders(by, hash, nowMs + i * passMs));
    }
    if (signer === by) {
      current = { publicKey: by.publicKey, passes };
      known = Promise.resolve(hash);
      store(current);
    }
  }

  async function headers(): Promise<Partial<IdentityHeaders>> {
    if (signer !== undefined && passesLeft(current) < passCount / 2) {
      signing ??= sign(signer).finally(() => (signing = undefined));
      await signing;
    }
    const pass = passNow(current);
    if (pass === undefined) {
      if (current !== undefined && signer === undefined) {
        signOut();
      }
      return {};
    }
    // Another node, or a new network, may have taken over the address. It would reject these headers.
    const hash = await (known ??= network().catch(() => undefined));
    if (hash !== undefined && hash !== pass.network) {
      signOut();
      return {};
    }
    return pass;
  }

  addEventListener("storage", ({ key }) => {
    if (key === storageName || key === null) {
      const stored = readStored();
      if (stored?.publicKey === current?.publicKey) {
        current = stored;
      } else {
        change(stored);
      }
    }
  });

  return {
    get publicKey() {
      return current?.publicKey;
    },
    get signer() {
      return signer;
    },
    headers,
    signIn(key) {
      const text = key.trim();
      if (isEncryptedPem(text)) {
        throw new TypeError("This key is encrypted. Import it under Keys, with its passphrase.");
      }
      const valid = validateSigner(text.includes("-----") ? keyFromPem(text) : keyFromSeed(text));
      change({ publicKey: valid.publicKey, passes: [] }, valid);
      // A page that the reader opens next uses the session, whether or not this page requests something first.
      headers().catch(() => undefined);
    },
    signOut,
    onChange: (listener) => void listeners.push(listener),
  };
}

/** Returns the headers for now; undefined if there are none. */
function passNow(session: StoredSession | undefined): IdentityHeaders | undefined {
  return session?.passes.find(({ timestamp }) => {
    const ageMs = Date.now() - Number(timestamp);
    return ageMs >= 0 && ageMs < passMs;
  });
}

function passesLeft(session: StoredSession | undefined): number {
  const pass = passNow(session);
  return pass === undefined ? 0 : session!.passes.length - session!.passes.indexOf(pass);
}

/** Returns the session that the browser stores; undefined if it expired, or if the browser blocks storage. */
function readStored(): StoredSession | undefined {
  try {
    const stored = JSON.parse(localStorage.getItem(storageName) ?? "null") as StoredSession | null;
    return stored !== null && passNow(stored) !== undefined ? stored : undefined;
  } catch {
    return undefined;
  }
}

function store(session: StoredSession | undefined): void {
  try {
    if (session === undefined) {
      localStorage.removeItem(storageName);
    } else {
      localStorage.setItem(storageName, JSON.stringify(session));
    }
  } catch {
    // Storage may be blocked. The session is then on this page only.
  }
}
