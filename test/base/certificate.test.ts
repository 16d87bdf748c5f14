/** Certificates as OpenSSL reads them. */
import test from "ava";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { createCertificate } from "../../src/base/crypto/certificate.js";

test("times are written as RFC 5280 wants them: UTCTime before 2050, GeneralizedTime from then on", (t) => {
  const { cert } = createCertificate(generateKeyPairSync("ed25519").privateKey);
  const parsed = execFileSync("openssl", ["asn1parse"], { input: cert, encoding: "utf8" });
  const times = [...parsed.matchAll(/prim: (\w+TIME)\s*:(\w+)/g)].map(([, type, time]) => [type, time]);
  t.deepEqual(times, [
    ["UTCTIME", "200101000000Z"],
    ["GENERALIZEDTIME", "99991231235959Z"],
  ]);
});
