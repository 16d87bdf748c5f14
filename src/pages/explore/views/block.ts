/** Shows a block: header, signatures, transactions. */
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { bytesToHex, sha256Hex } from "../../../../client/src/bytes.js";
import { bytesOf, hashOf } from "../../../../client/src/proof/hashing.js";
import { checkHeader, checkSignedHead, readHeader } from "../../../../client/src/proof/headers.js";
import { HeadStatementSchema } from "../../../../gen/gatehouse/chain/v1/block_pb.js";
import type { BlockAnswer, HeadAnswer, TransactionSummary } from "../answers.js";
import { type Column, dataTable } from "../table/data-table.js";
import { button, type Content, h } from "../dom.js";
import {
  blockHashLink,
  blockLink,
  facts,
  hash as copyableHash,
  link,
  messageOf,
  ownerLink,
  section,
  shortHash,
  timeAgo,
  wholeLink,
} from "../parts.js";
import type { Proofs } from "../proofs.js";
import { loadTransactions, operationFilter, transactionColumns } from "../table/transaction-rows.js";
import { trustForm } from "../trust-form.js";
import { type Step, stepList, unproved } from "../verify-steps.js";
import type { Looking, View } from "../view.js";
import { counted, sizeOf, timeOf } from "../words.js";

/** @param name its number, its hash, or `latest`. */
export async function viewBlock({ node, proofs, signal }: Looking, name: string): Promise<View> {
  const path = /^(0x)?[0-9a-f]{64}$/i.test(name)
    ? `chain/blocks/hash/${name}`
    : `chain/blocks/${encodeURIComponent(name)}`;
  const [answer, latest] = await Promise.all([
    node.ask<BlockAnswer>(path, signal),
    node.ask<HeadAnswer>("chain/head", signal),
  ]);
  const { hash, header, transactionHashes, block } = answer;
  const { number, timestamp } = header;
  const { place, hash: hashColumn, operation, sender } = transactionColumns;
  const columns: Column<TransactionSummary>[] = [place, hashColumn, operation, sender];
  const transactions = await dataTable({
    id: "transactions",
    label: "Transactions",
    columns,
    filters: [operationFilter],
    empty: "It holds none.",
    load: loadTransactions(node, { blockNumber: String(number) }, signal),
  });
  const signature = base64Decode(block.signature);
  return {
    title: `Block ${number}`,
    contents: [
      h(
        "p",
        {},
        ...(number > 1 ? [link({ kind: "block", name: String(number - 1) }, `← Block ${number - 1}`), " "] : []),
        ...(number < latest.number
          ? [link({ kind: "block", name: String(number + 1) }, `Block ${number + 1} →`)]
          : [h("span", { class: "dim" }, "This is the latest block.")]),
      ),
      facts({
        Hash: copyableHash(hash),
        Time: h("span", {}, timeOf(timestamp), ", ", timeAgo(timestamp)),
        Transactions: transactionHashes.length,
        "Made by": wholeLink(ownerLink(header.proposer), header.proposer),
        Signature: shortHash(`0x${bytesToHex(signature)}`),
        "Signed head": headFact(latest, number),
        "Block before":
          number > 1
            ? wholeLink(blockHashLink(header.previousHash), header.previousHash)
            : h("span", {}, "the genesis, ", copyableHash(header.previousHash)),
        "State root": copyableHash(header.stateRoot),
        "Commitment root": header.commitmentRoot === null ? undefined : copyableHash(header.commitmentRoot),
        "Hash of its transactions": copyableHash(header.transactionsHash),
        Network: copyableHash(header.genesisHash),
        "Size of its header": sizeOf(base64Decode(block.header).length),
      }),
      section("Transactions", transactions),
      section("Signature", ...blockVerifier(proofs, answer, latest), trustForm(proofs, node)),
    ],
  };
}

/** Describes the latest statement of an authority, which says that this block or a later one is its latest. */
function headFact({ head }: HeadAnswer, number: number): Content {
  if (head === undefined) {
    return undefined;
  }
  const statement = fromBinary(HeadStatementSchema, base64Decode(head.statement));
  const said = Number(statement.number);
  return h(
    "span",
    {},
    ownerLink(statement.proposer),
    " said ",
    timeAgo(Number(statement.timestampMs)),
    ...(said === number ? [" that this block is the latest"] : [" that block ", blockLink(said), " is the latest"]),
  );
}

/** Returns a button that checks the block in this page, and its result. */
function blockVerifier(proofs: Proofs, answer: BlockAnswer, latest: HeadAnswer): HTMLElement[] {
  const verdict = h("div", { role: "status" });
  const steps = h("div");
  const result = h("div", { class: "verdict", hidden: true }, verdict, steps);
  const press = button("Verify this block", {}, async () => {
    result.hidden = false;
    const found = await checkBlock(proofs, answer, latest);
    const isGood = found.every(({ isPassed }) => isPassed === true);
    verdict.replaceChildren(
      isGood ? h("strong", { class: "good" }, "✓ Verified.") : h("strong", { class: "bad" }, "✗ Not verified."),
      isGood ? " An authority of the network signed this block." : "",
    );
    result.className = `verdict ${isGood ? "good" : "bad"}-line`;
    steps.replaceChildren(stepList(found), unproved(proofs));
  });
  return [h("p", {}, press), result];
}

/** Checks a block, one step after the other; a failed step ends the check. */
async function checkBlock(proofs: Proofs, answer: BlockAnswer, latest: HeadAnswer): Promise<Step[]> {
  const { head } = latest;
  const { hash, header, transactionHashes, block } = answer;
  const [bytes, signature] = [base64Decode(block.header), base64Decode(block.signature)];
  const steps: Step[] = [];
  let isStopped = false;
  const step = async (name: string, check: () => Content[] | Promise<Content[]>): Promise<void> => {
    if (isStopped) {
      steps.push({ name, isPassed: undefined, details: [] });
      return;
    }
    try {
      steps.push({ name, isPassed: true, details: await check() });
    } catch (error) {
      isStopped = true;
      steps.push({ name, isPassed: false, details: [messageOf(error)] });
    }
  };
  const need = (isTrue: boolean, message: string): void => {
    if (!isTrue) {
      throw new Error(message);
    }
  };
  await step("Transactions", () => {
    const joined = new Uint8Array(32 * transactionHashes.length);
    transactionHashes.forEach((one, i) => joined.set(bytesOf(one), 32 * i));
    need(
      `0x${sha256Hex(joined)}` === header.transactionsHash,
      "The hashes of the transactions are not those of the header.",
    );
    return [`${counted(transactionHashes.length, "hash", "hashes")} of transactions, in order, hash to the header’s.`];
  });
  await step("Header", () => {
    const read = readHeader(bytes);
    need(hashOf(bytes) === hash, "The header has another hash.");
    const isShown =
      Number(read.number) === header.number &&
      read.stateRoot === header.stateRoot &&
      read.previousHash === header.previousHash &&
      read.transactionsHash === header.transactionsHash &&
      read.proposer === header.proposer &&
      Number(read.timestampMs) === header.timestamp &&
      (read.commitmentRoot ?? null) === header.commitmentRoot;
    need(isShown, "The signed header differs from the one on this page.");
    return [`The ${bytes.length} signed bytes are the header on this page, and have the hash `, shortHash(hash)];
  });
  await step("Authority", async () => {
    const { authorities, genesisHash } = await proofs.network();
    need(authorities.has(header.proposer), "The signer is no authority of the trusted genesis.");
    return [
      ownerLink(header.proposer),
      ` is in the list of ${counted(authorities.size, "authority", "authorities")} of the genesis `,
      shortHash(genesisHash),
      proofs.trusted === undefined ? ", which this node named" : ", which you entered",
    ];
  });
  await step("Signature", async () => {
    checkHeader(bytes, signature, await proofs.network());
    return ["Ed25519, over the bytes of the header: ", shortHash(`0x${bytesToHex(signature)}`)];
  });
  await step("Age", async () => {
    const network = await proofs.network();
    if (head === undefined) {
      // Without a statement, the time of the latest signed block counts, as in proofs.
      const newest = checkHeader(base64Decode(latest.header), base64Decode(latest.signature), network);
      need(Number(newest.number) >= header.number, "The latest block is an earlier one.");
      return [
        "An authority signed block ",
        blockLink(Number(newest.number)),
        " ",
        timeAgo(Number(newest.fields.timestampMs)),
      ];
    }
    const signed = { statement: base64Decode(head.statement), signature: base64Decode(head.signature) };
    const said = checkSignedHead(signed as Parameters<typeof checkSignedHead>[0], network);
    need(Number(said.number) >= header.number, "An authority said that an earlier block is the latest.");
    need(Number(said.number) > header.number || said.hash === hash, "An authority named another block of this number.");
    return [
      "An authority said ",
      timeAgo(Number(said.timestampMs)),
      " that block ",
      blockLink(Number(said.number)),
      " is the latest",
    ];
  });
  return steps;
}
