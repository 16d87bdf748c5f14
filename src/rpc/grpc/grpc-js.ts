/** The library that calls other nodes; who calls nobody needs none of it. */
import type * as GrpcJs from "@grpc/grpc-js";
import { loadLater } from "../../base/async/lazy-require.js";

export const grpcJs = loadLater<typeof GrpcJs>("@grpc/grpc-js");
