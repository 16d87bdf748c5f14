/** Lazy import of the library for calls to other nodes. Nodes without outgoing calls never load the library. */
import type * as GrpcJs from "@grpc/grpc-js";
import { lazyRequire } from "../../base/async/lazy-require.js";

export const grpcJs = lazyRequire<typeof GrpcJs>("@grpc/grpc-js");
