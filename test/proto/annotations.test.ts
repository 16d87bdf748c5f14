/** What the contract says of itself beside its types, rpc by rpc and field by field. */
import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import test from "ava";
import { omit_when_unset } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { http } from "../../gen/google/api/annotations_pb.js";
import { isRequired, mayBeUnset } from "../../src/rpc/codec/presence.js";
import { pathFieldsOf } from "../../src/rpc/http/path-template.js";
import { contractFiles } from "../helpers/process/contract-files.js";

const files = await contractFiles();
const methods = files.flatMap((file) => file.services).flatMap((service) => service.methods);
const routed = methods.filter((method) => hasOption(method, http));

test("an rpc with a GET has no side effects, and one that writes does not say so", (t) => {
  const isSilent = new Map(
    methods.map((method) => [
      `${method.parent.typeName}/${method.name}`,
      method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    ]),
  );
  const gets = routed.filter((method) => getOption(method, http).pattern.case === "get");
  t.true(gets.length > 25);
  for (const { parent, name } of gets) {
    t.true(isSilent.get(`${parent.typeName}/${name}`), `${parent.typeName}/${name}`);
  }
  t.true(isSilent.get("gatehouse.attestation.v1.AttestationService/VerifyAttestation"));
  for (const writing of [
    "gatehouse.chain.v1.ChainService/SubmitTransaction",
    "gatehouse.chain.v1.ConsensusService/ApplyBlock",
    "gatehouse.control.v1.ControlService/AddPeer",
    "gatehouse.control.v1.ControlService/RemovePeer",
    "gatehouse.control.v1.ControlService/ReportSubsystem",
    "gatehouse.peer.v1.PeerService/GetChallenge",
    "gatehouse.peer.v1.PeerService/Handshake",
    "gatehouse.peer.v1.PeerService/ExchangeStatus",
    "gatehouse.peer.v1.PeerService/RelayTransactions",
  ]) {
    t.false(isSilent.get(writing), writing);
  }
});

test("what stands in a path is required", (t) => {
  const inPaths = routed.flatMap((method) => {
    const { pattern } = getOption(method, http);
    const names = pathFieldsOf(String(pattern.value));
    return method.input.fields.filter(({ name }) => names.includes(name));
  });
  t.true(inPaths.length > 15);
  t.deepEqual(inPaths.filter((field) => !isRequired(field)).map(String), []);
});

test("only what can be unset is left out when unset", (t) => {
  const fields: DescField[] = files
    .flatMap((file) => [...nestedTypes(file)])
    .filter((type): type is DescMessage => type.kind === "message")
    .flatMap((message) => message.fields);
  const omitted = fields.filter((field) => getOption(field, omit_when_unset));
  t.true(omitted.length > 5);
  t.deepEqual(
    omitted
      .filter((field) => field.fieldKind !== "list" && field.fieldKind !== "map" && !mayBeUnset(field))
      .map(String),
    [],
  );
});

test("each proto names its Go package, one module for all", (t) => {
  const own = files.filter(({ proto }) => !proto.package.startsWith("gatehouse.testing."));
  t.true(own.length > 15);
  for (const { proto } of own) {
    const [, area, version] = /^gatehouse\.(\w+)\.(v\d+)$/.exec(proto.package) ?? [];
    t.is(proto.options?.goPackage, `gatehouse.example/contract/${area}/${version};${area}${version}`, proto.name);
  }
});
