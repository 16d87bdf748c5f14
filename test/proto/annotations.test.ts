/** The options of rpcs and fields in the contract. */
import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import test from "ava";
import { omit_when_unset } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { http } from "../../gen/google/api/annotations_pb.js";
import { isRequired, mayBeUnset } from "../../src/rpc/codec/fields.js";
import { pathFieldsOf } from "../../src/rpc/http/http-rule.js";
import { contractFiles } from "../helpers/process/contract-files.js";

const files = await contractFiles();
const methods = files.flatMap((file) => file.services).flatMap((service) => service.methods);
const routed = methods.filter((method) => hasOption(method, http));

test("rpcs with a GET route declare NO_SIDE_EFFECTS, and rpcs that write do not", (t) => {
  const isRead = new Map(
    methods.map((method) => [
      `${method.parent.typeName}/${method.name}`,
      method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    ]),
  );
  const gets = routed.filter((method) => getOption(method, http).pattern.case === "get");
  t.true(gets.length > 25);
  for (const { parent, name } of gets) {
    t.true(isRead.get(`${parent.typeName}/${name}`), `${parent.typeName}/${name}`);
  }
  t.true(isRead.get("gatehouse.attestation.v1.AttestationService/VerifyAttestation"));
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
    t.false(isRead.get(writing), writing);
  }
});

test("fields in paths are required", (t) => {
  const inPaths = routed.flatMap((method) => {
    const { pattern } = getOption(method, http);
    const names = pathFieldsOf(String(pattern.value));
    return method.input.fields.filter(({ name }) => names.includes(name));
  });
  t.true(inPaths.length > 15);
  t.deepEqual(inPaths.filter((field) => !isRequired(field)).map(String), []);
});

test("only fields that can be unset have omit_when_unset", (t) => {
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

test("each proto names its Go package in one common module", (t) => {
  const publicFiles = files.filter(({ proto }) => !proto.package.startsWith("gatehouse.testing."));
  t.true(publicFiles.length > 15);
  for (const { proto } of publicFiles) {
    const [, area, version] = /^gatehouse\.(\w+)\.(v\d+)$/.exec(proto.package) ?? [];
    t.is(proto.options?.goPackage, `gatehouse.example/contract/${area}/${version};${area}${version}`, proto.name);
  }
});
