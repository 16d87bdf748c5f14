import test from "ava";
import { maxPresentationBytes, decodePresentation } from "../../src/attestation/input.js";
import { RpcError, type Reason } from "../../src/rpc/errors.js";

const bytes = Buffer.from("00017f80ff", "hex");
const json = (more: object): string =>
  JSON.stringify({ version: "0.1.0-alpha.12", data: bytes.toString("hex"), ...more });

test("decodes every encoding to the same bytes", (t) => {
  const forms = [
    bytes.toString("base64"),
    bytes.toString("base64url"),
    ` ${bytes.toString("base64")}\n`,
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    json({}),
    json({ meta: { notaryUrl: "x", pluginUrl: ["y"] } }),
    Buffer.from(json({ version: "0.1.0-alpha.11" })).toString("base64"),
  ];
  for (const form of forms) {
    t.deepEqual(Buffer.from(decodePresentation(form)), bytes, form);
  }
});

const rejects = test.macro({
  exec(t, text: string, reason: Reason, message: RegExp) {
    const failure = t.throws(() => decodePresentation(text), { instanceOf: RpcError });
    t.is(failure.reason, reason);
    t.regex(failure.message, message);
  },
  title: (_, text: string) => `rejects ${text.slice(0, 40)} (${text.length})`,
});

test(rejects, "", "INVALID_REQUEST", /is required/);
test(rejects, " ", "INVALID_REQUEST", /is required/);
test(rejects, "%", "INVALID_ATTESTATION", /neither base64, hex nor/);
test(rejects, "[1]", "INVALID_ATTESTATION", /neither base64, hex nor/);
test(rejects, "{", "INVALID_ATTESTATION", /starts like JSON/);
test(rejects, Buffer.from("{x").toString("base64"), "INVALID_ATTESTATION", /starts like JSON/);
test(rejects, "{}", "INVALID_ATTESTATION", /no version; supported are 0.1.0-alpha.11 and 0.1.0-alpha.12/);
test(rejects, json({ version: 12 }), "INVALID_ATTESTATION", /no version/);
test(rejects, json({ version: "0.1.0-alpha.7" }), "INVALID_ATTESTATION", /version "0.1.0-alpha.7"; supported/);
test(rejects, json({ version: "x".repeat(5_000) }), "INVALID_ATTESTATION", /^.{1,200}$/);
test(rejects, json({ data: "0x12" }), "INVALID_ATTESTATION", /data is not hex/);
test(rejects, json({ data: { length: 4 } }), "INVALID_ATTESTATION", /data is not hex/);
test(rejects, `{"a":${"[".repeat(1_000_000)}`, "INVALID_ATTESTATION", /nested deeper than 16/);
test(rejects, "00".repeat(maxPresentationBytes + 1), "PAYLOAD_TOO_LARGE", /larger than 524288 bytes/);
test(rejects, json({ data: "00".repeat(maxPresentationBytes + 1) }), "PAYLOAD_TOO_LARGE", /larger than 524288 bytes/);
