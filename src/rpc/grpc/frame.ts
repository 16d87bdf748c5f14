/** Frames of gRPC responses: messages with their prefix. */
import type { DescMessage } from "@bufbuild/protobuf";
import { isImmutable } from "../../base/caches/immutable.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { writeEnvelope } from "../exchange/envelope.js";

/** Minimum size of an immutable message, in bytes, for its frame to be cached. */
const minCachedBytes = 16 * 1024;

/** Message with its prefix. */
export interface Frame {
  readonly bytes: Buffer;
  /** True if the frame is cached with its message and shared between responses. */
  readonly isShared: boolean;
}

/** Compiles a message descriptor to an encoder of complete frames. */
export function frameEncoder(desc: DescMessage): (message: object) => Frame {
  const encode = binaryEncoder(desc);
  const frames = new WeakMap<object, Frame>();
  return (message) => {
    const cached = frames.get(message);
    if (cached !== undefined) {
      return cached;
    }
    const body = encode(message);
    const bytes = writeEnvelope(0, body);
    if (body.length < minCachedBytes || !isImmutable(message)) {
      return { bytes, isShared: false };
    }
    const frame = { bytes, isShared: true };
    frames.set(message, frame);
    return frame;
  };
}
