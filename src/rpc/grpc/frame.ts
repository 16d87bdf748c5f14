/** Frames of gRPC responses: messages with their prefix. */
import type { DescMessage } from "@bufbuild/protobuf";
import { isImmutable } from "../../base/caches/immutable.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { writeEnvelope } from "../exchange/envelope.js";

/** Minimum size of an immutable message, in bytes, for its frame to be cached. */
const longBytes = 16 * 1024;

/** Message with its prefix. */
export interface Frame {
  readonly bytes: Buffer;
  /** True if the frame is cached with its message and shared between responses. */
  readonly isShared: boolean;
}

/** Compiles a message descriptor to an encoder of complete frames. */
export function frameEncoder(desc: DescMessage): (message: object) => Frame {
  const encode = binaryEncoder(desc);
  const cached = new WeakMap<object, Frame>();
  return (message) => {
    const known = cached.get(message);
    if (known !== undefined) {
      return known;
    }
    const body = encode(message);
    const bytes = writeEnvelope(0, body);
    if (body.length < longBytes || !isImmutable(message)) {
      return { bytes, isShared: false };
    }
    const frame = { bytes, isShared: true };
    cached.set(message, frame);
    return frame;
  };
}
