import test from "ava";
import {
  ListProgramsByOwnerRequestSchema,
  GetFieldItemRequestSchema,
  SearchProgramsRequestSchema,
} from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { GetReadinessRequestSchema } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { VerifyAttestationRequestSchema } from "../../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { GetVersionRequestSchema } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { RpcError } from "../../../src/rpc/errors.js";
import { compileRequestBinder } from "../../../src/rpc/http/request-binder.js";

const search = compileRequestBinder(SearchProgramsRequestSchema, [], undefined);
const byOwner = compileRequestBinder(ListProgramsByOwnerRequestSchema, ["owner"], undefined);
const item = compileRequestBinder(GetFieldItemRequestSchema, ["storage_address", "field", "index"], undefined);
const someone = `0x${"ab".repeat(32)}`;
const other = `0x${"cd".repeat(32)}`;
const ready = compileRequestBinder(GetReadinessRequestSchema, [], undefined);
const verify = compileRequestBinder(VerifyAttestationRequestSchema, [], "*");

test("query values go to the field with that JSON name", (t) => {
  t.like(search([], "q=a%20b+c&exact=true&limit=7&offset=0", undefined), {
    query: "a b c",
    exact: true,
    limit: 7,
    offset: 0,
  });
});

test("what is not given is unset", (t) => {
  t.like(byOwner([someone], "", undefined), { owner: someone, limit: undefined, offset: undefined });
});

test("a path parameter is not taken from the query", (t) => {
  t.like(byOwner([someone], `owner=${other}`, undefined), { owner: someone });
});

test("names that no field has are passed over", (t) => {
  t.like(search([], "q=a&query=b&__proto__=c&constructor=d&=e&&x", undefined), { query: "a" });
});

test("a flag needs no value", (t) => {
  t.like(ready([], "verbose", undefined), { verbose: true, exclude: [] });
  t.like(ready([], "verbose=false", undefined), { verbose: false });
});

test("a list takes every value", (t) => {
  t.like(ready([], "exclude=boot&exclude=chain", undefined), { exclude: ["boot", "chain"] });
});

test("a request without fields costs nothing", (t) => {
  const bind = compileRequestBinder(GetVersionRequestSchema, [], undefined);
  t.is(bind([], "a=1", undefined), bind([], "", undefined));
});

const refuses = test.macro({
  exec(t, run: () => object, message: RegExp) {
    const error = t.throws(run, { instanceOf: RpcError });
    t.is(error.reason, "INVALID_REQUEST");
    t.regex(error.message, message);
  },
  title: (title) => `refused: ${title ?? ""}`,
});

for (const value of ["abc", "1e3", "-1", "1.5", "", " 1", "+1", "0x1", "01", "4294967296", "9".repeat(5000), "١"]) {
  test(
    `limit=${value.slice(0, 20)}`,
    refuses,
    () => search([], `q=a&limit=${encodeURIComponent(value)}`, undefined),
    /^limit must be a whole number from 1 to 200, not "/,
  );
}
test("a repeated limit", refuses, () => search([], "limit=1&limit=1", undefined), /^limit is given more than once/);
test("a flag that is none", refuses, () => search([], "exact=yes", undefined), /^exact must be true or false/);
test("malformed encoding in a query", refuses, () => search([], "q=%ZZ", undefined), /malformed/);
test(
  "an index that is none",
  refuses,
  () => item([`stor-${"0".repeat(40)}`, "f", "1e1"], "", undefined),
  /^index must be/,
);
test("a body that is no JSON", refuses, () => verify([], "", "{"), /is not JSON/);
test("a missing body", refuses, () => verify([], "", undefined), /is not JSON/);
test("a body that is a list", refuses, () => verify([], "", "[]"), /must be a JSON object/);
test(
  "a field of the wrong type",
  refuses,
  () => verify([], "", '{"attestation":5}'),
  /^attestation must be a text, not "5"\.$/,
);
test(
  "a field that is an object",
  refuses,
  () => verify([], "", '{"attestation":{}}'),
  /^attestation must be a text, not an object\.$/,
);

test("a body fills the request; unknown fields are passed over", (t) => {
  t.like(verify([], "", '{"attestation":"AA==","__proto__":{"x":1},"more":[1]}'), { attestation: "AA==" });
});

test("a template that names a missing field fails at start-up", (t) => {
  t.throws(() => compileRequestBinder(GetVersionRequestSchema, ["nope"], undefined), { message: /no field nope/ });
});
