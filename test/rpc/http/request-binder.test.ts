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
import { likeLists } from "../../helpers/like-lists.js";

const search = compileRequestBinder(SearchProgramsRequestSchema, [], undefined);
const byOwner = compileRequestBinder(ListProgramsByOwnerRequestSchema, ["owner"], undefined);
const item = compileRequestBinder(GetFieldItemRequestSchema, ["storage_address", "field", "index"], undefined);
const someone = `0x${"ab".repeat(32)}`;
const other = `0x${"cd".repeat(32)}`;
const ready = compileRequestBinder(GetReadinessRequestSchema, [], undefined);
const verify = compileRequestBinder(VerifyAttestationRequestSchema, [], "*");

test("binds query values to fields by JSON name", (t) => {
  t.like(search([], "q=a%20b+c&exact=true&limit=7&offset=0", undefined), {
    query: "a b c",
    exact: true,
    limit: 7,
    offset: 0,
  });
});

test("binds query values to fields by proto name, which errors repeat", (t) => {
  t.like(search([], "query=a&page_token=b", undefined), { query: "a", pageToken: "b" });
  t.throws(() => search([], "query=", undefined), { message: "query is required: 1 to 256 characters." });
});

test("leaves missing parameters unset", (t) => {
  t.like(byOwner([someone], "", undefined), { owner: someone, limit: undefined, offset: undefined });
});

test("ignores a query value for a path parameter", (t) => {
  t.like(byOwner([someone], `owner=${other}`, undefined), { owner: someone });
});

test("ignores query names that match no field", (t) => {
  t.like(search([], "q=a&__proto__=c&constructor=d&=e&&x&_=7&q.a=1", undefined), { query: "a" });
});

test("accepts a boolean parameter without a value", (t) => {
  t.like(ready([], "verbose", undefined), { verbose: true, exclude: [] });
  t.like(ready([], "verbose=", undefined), { verbose: true });
  t.like(ready([], "verbose=1", undefined), { verbose: true });
  t.like(ready([], "verbose=false", undefined), { verbose: false });
  t.like(ready([], "verbose=0", undefined), { verbose: false });
});

test("binds every value of a repeated parameter to a list", (t) => {
  likeLists(t, ready([], "exclude=boot&exclude=chain", undefined), { exclude: ["boot", "chain"] });
});

test("returns one shared message for a request without fields", (t) => {
  const bind = compileRequestBinder(GetVersionRequestSchema, [], undefined);
  t.is(bind([], "a=1", undefined), bind([], "", undefined));
  t.throws(() => bind([], "%", undefined), { message: /malformed/ });
});

const badNumbers = ["abc", "1e3", "-1", "1.5", "", " 1", "+1", "0x1", "01", "4294967296", "9".repeat(5000), "١"];
const refusals: readonly (readonly [title: string, run: () => object, message: RegExp])[] = [
  ...badNumbers.map((value) => {
    const query = `q=a&limit=${encodeURIComponent(value)}`;
    const message = /^limit must be a whole number from 1 to 200, not "/;
    return [`limit=${value.slice(0, 20)}`, () => search([], query, undefined), message] as const;
  }),
  ["a repeated limit", () => search([], "limit=1&limit=1", undefined), /^limit is given more than once/],
  ["an invalid boolean", () => search([], "exact=yes", undefined), /^exact must be true or false/],
  ["malformed encoding in a query", () => search([], "q=%ZZ", undefined), /malformed/],
  ["an invalid index", () => item([`stor-${"0".repeat(40)}`, "f", "1e1"], "", undefined), /^index must be/],
  ["the same field by both names", () => search([], "q=a&query=b", undefined), /^query is given more than once/],
  ["a name in another case", () => search([], "Q=a", undefined), /^There is no parameter "Q"; use q\.$/],
  [
    "a name with brackets",
    () => ready([], "exclude[]=boot", undefined),
    /^There is no parameter "exclude\[\]"; use exclude\.$/,
  ],
  [
    "a parameter of other lists",
    () => search([], "q=a&pageSize=1", undefined),
    /^This list has no parameter "pageSize", only limit, offset, pageToken\.$/,
  ],
  [
    "a body that is not JSON",
    () => verify([], "", Buffer.from("{")),
    /is not JSON at line 1, column 2: the text ends\.$/,
  ],
  ["a missing body", () => verify([], "", undefined), /is not JSON/],
  ["a body that is a list", () => verify([], "", Buffer.from("[]")), /must be a JSON object/],
  ["a body that is not UTF-8", () => verify([], "", Buffer.from('{"attestation":"\xe9"}', "latin1")), /is not UTF-8/],
  [
    "a body with two members of one name",
    () => verify([], "", Buffer.from('{"attestation":"a","\\u0061ttestation":"b"}')),
    /^The request body has two members with the name "attestation" in one object, at line 1, column 20\.$/,
  ],
  ["a wrong type", () => verify([], "", Buffer.from('{"attestation":5}')), /^attestation must be a text, not "5"\.$/],
  [
    "an object",
    () => verify([], "", Buffer.from('{"attestation":{}}')),
    /^attestation must be a text, not an object\.$/,
  ],
];
for (const [title, run, message] of refusals) {
  test(`rejects ${title}`, (t) => {
    const error = t.throws(run, { instanceOf: RpcError });
    t.is(error.reason, "INVALID_REQUEST");
    t.regex(error.message, message);
  });
}

test("binds the body to the request, and ignores unknown fields", (t) => {
  t.like(verify([], "", Buffer.from('{"attestation":"AA==","__proto__":{"x":1},"more":[1]}')), { attestation: "AA==" });
});

test("rejects a template that names a missing field at startup", (t) => {
  t.throws(() => compileRequestBinder(GetVersionRequestSchema, ["nope"], undefined), { message: /no field nope/ });
});
