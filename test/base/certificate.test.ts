/** Certificates, as OpenSSL parses them. */
import test from "ava";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { createCertificate } from "../../src/base/crypto/certificate.js";

test("encodes times by RFC 5280: UTCTime before 2050, GeneralizedTime afterwards", (t) => {
  const { cert } = createCertificate(generateKeyPairSync("ed25519").privateKey);
  const parsed = execFileSync("openssl", ["asn1parse"], { input: cert, encoding: "utf8" });
  const times = [...parsed.matchAll(/prim: (\w+TIME)\s*:(\w+)/g)].map(([, type, time]) => [type, time]);
  t.deepEqual(times, [
    ["UTCTIME", "200101000000Z"],
    ["GENERALIZEDTIME", "99991231235959Z"],
  ]);
});
