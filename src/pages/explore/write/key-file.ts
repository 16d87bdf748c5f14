/**
 * Files of private keys in PEM: PKCS #8 without encryption (RFC 8410), or encrypted with a passphrase by PBES2 (RFC 8018)
 * with PBKDF2, HMAC-SHA-256 and AES-256-CBC, as OpenSSL and Node.js read and write them.
 */
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { bytesToHex, hexToBytes } from "../../../../client/src/bytes.js";
import { seedFromPem } from "../../../../client/src/keys.js";
import { deriveKey, iterations } from "./derive-key.js";

/** DER elements up to the 32 bytes of an Ed25519 key. */
const plainStart = "302e020100300506032b657004220420";
/** Identifiers of the algorithms, as DER elements. */
const [pbes2, pbkdf2] = ["06092a864886f70d01050d", "06092a864886f70d01050c"];
const hmacSha256 = "300c06082a864886f70d02090500";
const aes256Cbc = "060960864801650304012a";
/** Limit on the iterations that a file may demand, which would block the page for minutes. */
const maxIterations = 10_000_000;

/** Returns a private key as PEM text that is not encrypted, as `gatehouse keygen` writes it. */
export function plainPem(seed: string): string {
  return pem("PRIVATE KEY", hexToBytes(plainStart + seed));
}

/** Returns a private key as PEM text that is encrypted with a passphrase. */
export async function encryptedPem(seed: string, passphrase: string): Promise<string> {
  const [salt, iv] = [crypto.getRandomValues(new Uint8Array(16)), crypto.getRandomValues(new Uint8Array(16))];
  const key = await deriveKey(passphrase, { salt, iterations, cipher: "AES-CBC", usage: "encrypt" });
  const plain = Uint8Array.from(hexToBytes(plainStart + seed));
  const ciphertext = await crypto.subtle.encrypt({ name: "AES-CBC", iv }, key, plain);
  const rounds = iterations.toString(16).padStart(6, "0");
  const derivation = der("30", pbkdf2, der("30", der("04", bytesToHex(salt)), der("02", rounds), hmacSha256));
  const encryption = der("30", aes256Cbc, der("04", bytesToHex(iv)));
  const algorithm = der("30", pbes2, der("30", derivation, encryption));
  const bytes = der("30", algorithm, der("04", bytesToHex(new Uint8Array(ciphertext))));
  return pem("ENCRYPTED PRIVATE KEY", hexToBytes(bytes));
}

/** Returns true for the text of an encrypted key. */
export function isEncryptedPem(text: string): boolean {
  return text.includes("-----BEGIN ENCRYPTED PRIVATE KEY-----");
}

/**
 * Returns the seed of an encrypted key as 64 hex digits.
 *
 * @throws TypeError if the text is encrypted in another form, or is not an Ed25519 key.
 * @throws Error if the passphrase is wrong.
 */
export async function decryptPem(text: string, passphrase: string): Promise<string> {
  const { salt, rounds, iv, ciphertext } = readEncrypted(text);
  const key = await deriveKey(passphrase, { salt, iterations: rounds, cipher: "AES-CBC", usage: "decrypt" });
  let bytes: ArrayBuffer;
  try {
    bytes = await crypto.subtle.decrypt({ name: "AES-CBC", iv }, key, ciphertext);
  } catch {
    throw new Error("The passphrase is wrong.");
  }
  return seedFromPem(pem("PRIVATE KEY", new Uint8Array(bytes)));
}

function readEncrypted(text: string) {
  try {
    const content = /-----BEGIN ENCRYPTED PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END ENCRYPTED/.exec(text)![1]!;
    const [outer] = readDer(bytesToHex(base64Decode(content.replace(/\s/g, ""))), "30");
    const [algorithm, encrypted] = readDer(outer, "30");
    const [parameters] = readDer(after(algorithm, pbes2), "30");
    const [derivation, cipher] = readDer(parameters, "30");
    const [salt, counts] = readDer(readDer(after(derivation, pbkdf2), "30")[0], "04");
    const [rounds, hash] = readDer(counts, "02");
    // OpenSSL may also state the length of the key, which the cipher determines.
    after(hash.replace(/^020120/, ""), hmacSha256);
    const [iv] = readDer(after(readDer(cipher, "30")[0], aes256Cbc), "04");
    const [ciphertext] = readDer(encrypted, "04");
    const bytesOf = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(hexToBytes(hex));
    const count = parseInt(rounds, 16);
    if (count >= 1 && count <= maxIterations) {
      return { salt: bytesOf(salt), rounds: count, iv: bytesOf(iv), ciphertext: bytesOf(ciphertext) };
    }
  } catch {
    // The error below names the form that this page reads.
  }
  throw new TypeError(
    "The key is encrypted in another form than PBES2 with PBKDF2, HMAC-SHA-256 and AES-256-CBC; convert it with: openssl pkcs8 -topk8 -v2 aes-256-cbc -v2prf hmacWithSHA256",
  );
}

/** Returns a DER element with this tag and content, in hex. */
function der(tag: string, ...contents: readonly string[]): string {
  const content = contents.join("");
  const length = (content.length / 2).toString(16).padStart(2, "0");
  return `${tag}${content.length < 256 ? "" : "81"}${length}${content}`;
}

/** Returns the content of the first DER element, and what follows it. Throws a TypeError for another tag. */
function readDer(hex: string, tag: string): [content: string, rest: string] {
  const rest = after(hex, tag);
  const isLong = rest.startsWith("81");
  const start = isLong ? 4 : 2;
  const end = start + 2 * parseInt(rest.slice(isLong ? 2 : 0, start), 16);
  if (!(end <= rest.length)) {
    throw new TypeError("The DER element is not complete.");
  }
  return [rest.slice(start, end), rest.slice(end)];
}

/** Returns what follows a start. Throws a TypeError if the text has another one. */
function after(hex: string, start: string): string {
  if (!hex.startsWith(start)) {
    throw new TypeError("The DER element is another one.");
  }
  return hex.slice(start.length);
}

function pem(label: string, bytes: Uint8Array): string {
  const lines = base64Encode(bytes).replace(/.{64}(?=.)/g, "$&\n");
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}
