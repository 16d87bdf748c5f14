/** What authorities say of the newest block, made and read of protobuf-es and node:crypto alone. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createPublicKey, verify } from "node:crypto";
import { type HeadStatement, HeadStatementSchema, type SignedHead } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { SignedHeadSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { TestKey } from "./keys.js";
import { askJson } from "../wire/plain-client.js";

const prefix = Buffer.from("gatehouse head v1\0", "latin1");

/** A statement that this key signs, which is also its proposer where none is named. */
export function signedHead(key: TestKey, said: MessageInitShape<typeof HeadStatementSchema>): SignedHead {
  const whole = create(HeadStatementSchema, { proposer: key.publicKey, ...said });
  const statement = toBinary(HeadStatementSchema, whole);
  return create(SignedHeadSchema, { statement, signature: key.sign(Buffer.concat([prefix, statement])) });
}

/** What a signed statement says. Throws where its signature is not that of its proposer. */
export function readSignedHead({ statement, signature }: Pick<SignedHead, "statement" | "signature">): HeadStatement {
  const said = fromBinary(HeadStatementSchema, statement);
  const x = Buffer.from(said.proposer.slice(2), "hex").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (!verify(null, Buffer.concat([prefix, statement]), key, signature)) {
    throw new Error("The head statement is not signed by its proposer.");
  }
  return said;
}

/** The newest block as GET /chain/head gives it. */
export interface HeadJson {
  readonly number: number;
  readonly hash: string;
  readonly timestamp: number;
  readonly genesisHash: string;
  readonly header: string;
  readonly signature: string;
  readonly head?: { readonly statement: string; readonly signature: string };
}

/** The newest block of the node at this port, and what is said of it; a statement that proves itself, or none. */
export async function askHead({ port }: { readonly port: number }): Promise<{
  readonly head: HeadJson;
  readonly said: HeadStatement | undefined;
}> {
  const head = await askJson<HeadJson>(port, "/chain/head");
  const bytes = (text: string): Uint8Array => Buffer.from(text, "base64");
  const said =
    head.head && readSignedHead({ statement: bytes(head.head.statement), signature: bytes(head.head.signature) });
  return { head, said };
}

/** When it was said that the newest block of the node at this port is that; 0 where it was not. */
export async function saidMs(node: { readonly port: number }): Promise<number> {
  return Number((await askHead(node)).said?.timestampMs ?? 0n);
}
