/** Ed25519 public keys, compared with @noble/curves, and certificates of such keys, as OpenSSL parses them. */
import { ed25519 } from "@noble/curves/ed25519.js";
import test from "ava";
import { execFileSync } from "node:child_process";
import { randomBytes, X509Certificate } from "node:crypto";
import { createCertificate, identityOfCertificate } from "../../src/base/crypto/certificate.js";
import { verifyEd25519 } from "../../src/base/crypto/ed25519.js";
import { isStrongKey } from "../../src/base/crypto/key-validation.js";
import { testKey } from "../helpers/chain/keys.js";
import { forge, nonCanonicalKeys, smallOrderKeys } from "../helpers/chain/weak-keys.js";

const message = Buffer.from("a message");

test("a small-order key verifies no signature, in any encoding", (t) => {
  t.is(smallOrderKeys.length, 14);
  for (const key of smallOrderKeys) {
    t.false(isStrongKey(key), key);
    t.false(verifyEd25519(key, message, forge(key, message)), key);
  }
});

test("rejects keys in a non-canonical encoding", (t) => {
  t.is(nonCanonicalKeys.length, 38);
  for (const key of nonCanonicalKeys) {
    t.throws(() => ed25519.Point.fromHex(key.slice(2)), undefined, key);
    t.false(isStrongKey(key), key);
  }
});

test("accepts other keys, with and without 0x", (t) => {
  for (let seed = 1; seed < 100; seed++) {
    const key = testKey(seed);
    t.true(isStrongKey(key.publicKey));
    t.true(verifyEd25519(key.publicKey, message, key.sign(message)));
    t.true(verifyEd25519(key.publicKey.slice(2), message, key.sign(message)));
  }
});

test("agrees with @noble/curves on random points", (t) => {
  let points = 0;
  for (let i = 0; i < 200; i++) {
    const hex = randomBytes(32).toString("hex");
    try {
      const point = ed25519.Point.fromHex(hex);
      points++;
      t.is(isStrongKey(hex), !point.isSmallOrder(), hex);
    } catch {
      // Not a point: no signature is valid for it.
      t.false(verifyEd25519(hex, message, testKey(1).sign(message)));
    }
  }
  t.true(points > 0);
});

test("a certificate with a small-order key proves no identity", (t) => {
  const key = testKey(1);
  const der = new X509Certificate(createCertificate(key.privateKey).cert).raw;
  t.is(identityOfCertificate(der), key.publicKey);
  const at = der.indexOf(Buffer.from(key.publicKey.slice(2), "hex"));
  for (const weak of smallOrderKeys) {
    const changed = Buffer.from(der);
    Buffer.from(weak.slice(2), "hex").copy(changed, at);
    t.is(identityOfCertificate(changed), undefined, weak);
  }
});

test("encodes times by RFC 5280: UTCTime before 2050, GeneralizedTime afterwards", (t) => {
  const { cert } = createCertificate(testKey(1).privateKey);
  const parsed = execFileSync("openssl", ["asn1parse"], { input: cert, encoding: "utf8" });
  const times = [...parsed.matchAll(/prim: (\w+TIME)\s*:(\w+)/g)].map(([, type, time]) => [type, time]);
  t.deepEqual(times, [
    ["UTCTIME", "200101000000Z"],
    ["GENERALIZEDTIME", "99991231235959Z"],
  ]);
});
