import test from "ava";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { startTestNode } from "../../helpers/nodes/start-node.js";
import { bufCurl, whyNoBuf } from "../../helpers/process/programs.js";
import { testUnless } from "../../helpers/nodes/when.js";

testUnless(whyNoBuf)("a client without any proto lists the services and calls one (buf curl)", async (t) => {
  const { rpcUrl } = await startTestNode(t);
  const buf = async (...args: string[]): Promise<string> =>
    bufCurl("--protocol", "grpc", "--http2-prior-knowledge", ...args);
  const services = (await buf("--list-services", rpcUrl)).trim().split("\n");
  for (const name of [
    "gatehouse.health.v1.HealthService",
    "gatehouse.storage.v1.StorageService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
  ]) {
    t.true(services.includes(name), name);
  }
  t.like(JSON.parse(await buf(`${rpcUrl}/gatehouse.info.v1.InfoService/GetVersion`)), { version: "0.2.0" });
});

for (const service of [ServerReflection, ServerReflectionAlpha] as const) {
  test(`${service.typeName} finds files by name, symbol and extension, and reports unknown ones`, async (t) => {
    const { rpcUrl } = await startTestNode(t);
    const client = createClient(service as typeof ServerReflection, createGrpcTransport({ baseUrl: rpcUrl }));
    const questions = [
      { case: "fileByFilename", value: "gatehouse/zk/v1/zk.proto" },
      { case: "fileContainingSymbol", value: "gatehouse.zk.v1.ZkService" },
      { case: "fileContainingSymbol", value: "gatehouse.zk.v1.ZkService.GetMerkleRoot" },
      { case: "fileContainingSymbol", value: service.typeName },
      {
        case: "fileContainingExtension",
        value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 72295728 },
      },
      { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
      { case: "fileContainingSymbol", value: "no.such.Thing" },
      { case: "fileByFilename", value: "" },
    ] as const;
    const requests = (async function* () {
      for (const messageRequest of questions) {
        yield await Promise.resolve({ host: "h", messageRequest });
      }
    })();
    const answers: string[] = [];
    for await (const { messageResponse: answer, validHost } of client.serverReflectionInfo(requests)) {
      t.is(validHost, "h");
      switch (answer.case) {
        case "fileDescriptorResponse": {
          const names = answer.value.fileDescriptorProto.map(
            (file) => fromBinary(FileDescriptorProtoSchema, file).name,
          );
          answers.push(names[0]!);
          break;
        }
        case "allExtensionNumbersResponse":
          answers.push(answer.value.extensionNumber.toSorted((a, b) => a - b).join());
          break;
        case "errorResponse":
          answers.push(`error ${answer.value.errorCode}`);
          break;
        default:
          answers.push(String(answer.case));
      }
    }
    t.deepEqual(answers, [
      "gatehouse/zk/v1/zk.proto",
      "gatehouse/zk/v1/zk.proto",
      "gatehouse/zk/v1/zk.proto",
      service.file.proto.name,
      "google/api/annotations.proto",
      "53550,53551,53552,53553,72295728",
      "error 5",
      "error 5",
    ]);
  });
}
