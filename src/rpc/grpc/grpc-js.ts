/** The library that calls other nodes; who calls nobody needs none of it. */
import type * as GrpcJs from "@grpc/grpc-js";
import { lazyRequire } from "../../base/async/lazy-require.js";

export const grpcJs = lazyRequire<typeof GrpcJs>("@grpc/grpc-js");
