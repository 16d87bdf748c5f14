/** Signed heads, created and verified only with protobuf-es and node:crypto. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createPublicKey, verify } from "node:crypto";
import { type HeadStatement, HeadStatementSchema, type SignedHead } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { SignedHeadSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { TestKey } from "./keys.js";
import { askJson } from "../wire/plain-client.js";

const prefix = Buffer.from("gatehouse head v1\0", "latin1");

/** Signs a head statement. By default the key is also its proposer. */
export function signedHead(key: TestKey, fields: MessageInitShape<typeof HeadStatementSchema>): SignedHead {
  const message = create(HeadStatementSchema, { proposer: key.publicKey, ...fields });
  const statement = toBinary(HeadStatementSchema, message);
  return create(SignedHeadSchema, { statement, signature: key.sign(Buffer.concat([prefix, statement])) });
}

/** Decodes a signed head. Throws if its proposer has not signed it. */
export function readSignedHead({ statement, signature }: Pick<SignedHead, "statement" | "signature">): HeadStatement {
  const decoded = fromBinary(HeadStatementSchema, statement);
  const x = Buffer.from(decoded.proposer.slice(2), "hex").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (!verify(null, Buffer.concat([prefix, statement]), key, signature)) {
    throw new Error("The head statement is not signed by its proposer.");
  }
  return decoded;
}

/** The response of GET /chain/head. */
export interface HeadJson {
  readonly number: number;
  readonly hash: string;
  readonly timestamp: number;
  readonly genesisHash: string;
  readonly header: string;
  readonly signature: string;
  readonly head?: { readonly statement: string; readonly signature: string };
}

/** Requests the latest block of a node, and verifies its signed head, if there is one. */
export async function askHead({ port }: { readonly port: number }): Promise<{
  readonly head: HeadJson;
  readonly signedHead: HeadStatement | undefined;
}> {
  const head = await askJson<HeadJson>(port, "/chain/head");
  const bytes = (text: string): Uint8Array => Buffer.from(text, "base64");
  const signedHead =
    head.head && readSignedHead({ statement: bytes(head.head.statement), signature: bytes(head.head.signature) });
  return { head, signedHead };
}

/** Returns the time of the signed head of a node, in ms; 0 without one. */
export async function signedHeadMs(node: { readonly port: number }): Promise<number> {
  return Number((await askHead(node)).signedHead?.timestampMs ?? 0n);
}
