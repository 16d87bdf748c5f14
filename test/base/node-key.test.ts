import test from "ava";
import { generateKeyPairSync, verify, createPublicKey } from "node:crypto";
import { chmod, readdir, stat, writeFile } from "node:fs/promises";
import { inspect } from "node:util";
import { join } from "node:path";
import { createNodeKey, loadNodeKey, loadOrCreateNodeKey, nodeKeyPath } from "../../src/base/crypto/node-key.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

test("creates a key once, with mode 0600 in a directory with mode 0700, and loads it afterwards", async (t) => {
  const dir = join(await temporaryDirectory(t), "new");
  const first = await loadOrCreateNodeKey(dir);
  t.regex(first.publicKey, /^0x[0-9a-f]{64}$/);
  t.is((await stat(nodeKeyPath(dir))).mode & 0o777, 0o600);
  t.is((await stat(dir)).mode & 0o777, 0o700);
  t.is((await loadOrCreateNodeKey(dir)).publicKey, first.publicKey);
  t.deepEqual(await readdir(dir), ["identity.key"]);
});

test("concurrent calls all get the same key", async (t) => {
  const dir = await temporaryDirectory(t);
  const keys = await Promise.all(Array.from({ length: 20 }, () => loadOrCreateNodeKey(dir)));
  t.is(new Set(keys.map(({ publicKey }) => publicKey)).size, 1);
  t.deepEqual(await readdir(dir), ["identity.key"]);
});

test("signs with Ed25519", async (t) => {
  const key = await loadOrCreateNodeKey(await temporaryDirectory(t));
  const x = Buffer.from(key.publicKey.slice(2), "hex").toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  t.true(verify(null, Buffer.from("text"), publicKey, key.sign(Buffer.from("text"))));
});

test("does not expose the private key", async (t) => {
  const key = await loadOrCreateNodeKey(await temporaryDirectory(t));
  t.deepEqual(Object.keys(key).sort(), ["publicKey", "sign", "tlsCredentials"]);
  t.notRegex(`${inspect(key, { depth: null, showHidden: true })}${JSON.stringify(key)}`, /PRIVATE|KeyObject/);
});

test("rejects a key file that others may read, and says how to fix it", async (t) => {
  const dir = await temporaryDirectory(t);
  await createNodeKey(nodeKeyPath(dir));
  await chmod(nodeKeyPath(dir), 0o640);
  await t.throwsAsync(loadOrCreateNodeKey(dir), { message: /can be read by others than its owner; run: chmod 600 / });
});

test("rejects a file that is not an Ed25519 key, and leaves it unchanged", async (t) => {
  const dir = await temporaryDirectory(t);
  await writeFile(nodeKeyPath(dir), "not a key", { mode: 0o600 });
  await t.throwsAsync(loadOrCreateNodeKey(dir), { message: /is not a readable private key in PEM form; restore it/ });
  const { privateKey } = generateKeyPairSync("x25519");
  await writeFile(nodeKeyPath(dir), privateKey.export({ type: "pkcs8", format: "pem" }));
  await t.throwsAsync(loadOrCreateNodeKey(dir), { message: /is a x25519 key; a node needs an Ed25519 key/ });
});

test("reads an encrypted key with its passphrase only", async (t) => {
  const path = nodeKeyPath(await temporaryDirectory(t));
  const { privateKey } = generateKeyPairSync("ed25519");
  // The passphrase has a composed and a decomposed form, which look the same.
  const [composed, decomposed] = ["caf\u00e9 au lait", "cafe\u0301 au lait"];
  const pem = privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: composed });
  await writeFile(path, pem, { mode: 0o600 });
  for (const passphrase of [composed, decomposed]) {
    const { publicKey } = await loadNodeKey(path, () => Promise.resolve(passphrase));
    t.is(
      publicKey,
      `0x${Buffer.from(createPublicKey(privateKey).export({ format: "jwk" }).x!, "base64url").toString("hex")}`,
    );
  }
  await t.throwsAsync(
    loadNodeKey(path, () => Promise.resolve("wrong")),
    { message: /^The passphrase of the key .* is wrong, or the file is damaged\.$/ },
  );
  await t.throwsAsync(loadNodeKey(path), { message: /is encrypted, and a node cannot ask for its passphrase/ });
});
