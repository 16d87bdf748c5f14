/** Baseline server: grpc-js with constant bytes for each method, without decoding or encoding. */
import { type MethodDefinition, Server, ServerCredentials } from "@grpc/grpc-js";
import "./report-usage.js";

const asIs = (bytes: Buffer): Buffer => bytes;

process.once("message", ({ answers }: { readonly answers: Readonly<Record<string, Uint8Array>> }) => {
  const server = new Server();
  for (const [path, bytes] of Object.entries(answers)) {
    const definition: MethodDefinition<Buffer, Buffer> = {
      path,
      requestStream: false,
      responseStream: false,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    const answer = Buffer.from(bytes);
    server.addService(
      { method: definition },
      { method: (_call: unknown, done: (e: null, b: Buffer) => void) => done(null, answer) },
    );
  }
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) {
      throw error;
    }
    process.send?.({ port });
  });
});
