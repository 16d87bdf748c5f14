/** Answers of gRPC as they are sent: messages with their prefix. */
import type { DescMessage } from "@bufbuild/protobuf";
import { isImmutable } from "../../base/caches/immutable.js";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { writeEnvelope } from "../exchange/envelope.js";

/** Frames of immutable messages that are longer than this are kept. */
const longBytes = 16 * 1024;

/** A message with its prefix. */
export interface Frame {
  readonly bytes: Buffer;
  /** Kept with its message, and sent to whoever asks. */
  readonly isShared: boolean;
}

/** Compiles a message descriptor to an encoder of whole frames. */
export function frameEncoder(desc: DescMessage): (message: object) => Frame {
  const encode = binaryEncoder(desc);
  const kept = new WeakMap<object, Frame>();
  return (message) => {
    const known = kept.get(message);
    if (known !== undefined) {
      return known;
    }
    const body = encode(message);
    const bytes = writeEnvelope(0, body);
    if (body.length < longBytes || !isImmutable(message)) {
      return { bytes, isShared: false };
    }
    const frame = { bytes, isShared: true };
    kept.set(message, frame);
    return frame;
  };
}
