/** Shows a block: its header, signatures and transactions, with a button that verifies it. */
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { bytesToHex, sha256Hex } from "../../../../client/src/bytes.js";
import { bytesOf, hashOf } from "../../../../client/src/proof/hashing.js";
import { checkHeader, checkSignedHead, readHeader } from "../../../../client/src/proof/headers.js";
import { HeadStatementSchema } from "../../../../gen/gatehouse/chain/v1/block_pb.js";
import type { BlockResponse, HeadResponse } from "../responses.js";
import { button, type Content, h } from "../dom.js";
import { watchBlocks } from "../live.js";
import {
  blockLink,
  facts,
  fullBlockLink,
  fullOwnerLink,
  hash as copyableHash,
  messageOf,
  ownerLink,
  section,
  shortHash,
  timeAgo,
  timeAndAge,
} from "../parts.js";
import { linkTo } from "../routes.js";
import type { Proofs } from "../proof/proofs.js";
import { transactionTable } from "../table/transaction-rows.js";
import { trustForm } from "../proof/trust-form.js";
import { type Step, stepList, unprovedNotice } from "../proof/verify-steps.js";
import type { View, ViewContext } from "../view.js";
import { counted, sizeOf } from "../format.js";

/** @param name number or hash of the block, or `latest`. */
export async function viewBlock(context: ViewContext, name: string): Promise<View> {
  const { node, proofs, signal } = context;
  const path = /^(0x)?[0-9a-f]{64}$/i.test(name)
    ? `chain/blocks/hash/${name}`
    : `chain/blocks/${encodeURIComponent(name)}`;
  const latest = await node.fetchJson<HeadResponse>("chain/head", signal);
  if (/^\d+$/.test(name) && Number(name) > latest.number) {
    return waitForBlock(context, Number(name));
  }
  const response = await node.fetchJson<BlockResponse>(path, signal);
  const { hash, header, transactionHashes, block } = response;
  const { number, timestamp } = header;
  const columns = ["hash", "index", "kind", "operation", "sender"] as const;
  const selection = { blockNumber: String(number) };
  const transactions = await transactionTable(context, selection, columns, "It has no transactions.");
  const signature = base64Decode(block.signature);
  return {
    title: `Block ${number}`,
    contents: [
      h(
        "p",
        { class: "buttons" },
        ...(number > 1 ? [neighbor(number - 1, `← Block ${number - 1}`), " "] : []),
        ...(number < latest.number
          ? [neighbor(number + 1, `Block ${number + 1} →`)]
          : [h("span", { class: "dim" }, "This is the latest block.")]),
      ),
      facts({
        Hash: copyableHash(hash),
        Time: timeAndAge(timestamp),
        Transactions: transactionHashes.length,
        Proposer: fullOwnerLink(header.proposer),
        Signature: shortHash(`0x${bytesToHex(signature)}`),
        "Signed head": signedHead(latest, number),
        "Previous block":
          number > 1
            ? fullBlockLink(header.previousHash)
            : h(
                "span",
                {},
                h("a", { href: node.urlOf("genesis") }, "the genesis"),
                ", ",
                copyableHash(header.previousHash),
              ),
        "State root": copyableHash(header.stateRoot),
        "Commitment root": header.commitmentRoot === null ? undefined : copyableHash(header.commitmentRoot),
        "Hash of the transactions": copyableHash(header.transactionsHash),
        Network: copyableHash(header.genesisHash),
        "Size of the header": sizeOf(base64Decode(block.header).length),
      }),
      section("Transactions", transactions),
      section("Signature", ...blockVerifier(proofs, response, latest), trustForm(proofs, node)),
    ],
  };
}

/** Loads the view again once the block exists. */
function waitForBlock({ node, signal, reload }: ViewContext, wanted: number): View {
  watchBlocks(node, signal, {
    onBlock(number) {
      if (number >= wanted) {
        reload();
      }
    },
    onError: () => undefined,
  });
  return {
    title: `Block ${wanted}`,
    contents: [h("p", {}, `There is no block ${wanted} yet: this page shows the block once it exists.`)],
  };
}

/** Returns the link to the block before or after. */
function neighbor(number: number, text: string): HTMLElement {
  return h("a", { class: "press", href: linkTo({ kind: "block", name: String(number) }) }, text);
}

/** Describes the latest signed statement of an authority about its latest block. */
function signedHead({ head }: HeadResponse, number: number): Content {
  if (head === undefined) {
    return undefined;
  }
  const statement = fromBinary(HeadStatementSchema, base64Decode(head.statement));
  const latest = Number(statement.number);
  return h(
    "span",
    {},
    ownerLink(statement.proposer),
    " signed ",
    timeAgo(Number(statement.timestampMs)),
    ...(latest === number ? [" that this block is the latest"] : [" that block ", blockLink(latest), " is the latest"]),
  );
}

/** Returns a button that verifies the block in this page, and the element for its result. */
function blockVerifier(proofs: Proofs, response: BlockResponse, latest: HeadResponse): HTMLElement[] {
  const outcome = h("div", { role: "status" });
  const steps = h("div");
  const result = h("div", { class: "verdict", hidden: true }, outcome, steps);
  const press = button("Verify this block", {}, async () => {
    result.hidden = false;
    const checked = await checkBlock(proofs, response, latest);
    const isGood = checked.every(({ isPassed }) => isPassed === true);
    outcome.replaceChildren(
      isGood ? h("strong", { class: "good" }, "✓ Verified.") : h("strong", { class: "bad" }, "✗ Not verified."),
      isGood ? " An authority of the network signed this block." : "",
    );
    result.className = `verdict ${isGood ? "good" : "bad"}-line`;
    steps.replaceChildren(stepList(checked), unprovedNotice(proofs));
  });
  return [h("p", {}, press), result];
}

/** Checks a block step by step. The steps after a failed one are not checked. */
async function checkBlock(proofs: Proofs, response: BlockResponse, latest: HeadResponse): Promise<Step[]> {
  const { head } = latest;
  const { hash, header, transactionHashes, block } = response;
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
  const require = (isTrue: boolean, message: string): void => {
    if (!isTrue) {
      throw new Error(message);
    }
  };
  await step("Transactions", () => {
    const joined = new Uint8Array(32 * transactionHashes.length);
    transactionHashes.forEach((transactionHash, i) => joined.set(bytesOf(transactionHash), 32 * i));
    require(`0x${sha256Hex(joined)}` ===
      header.transactionsHash, "The hashes of the transactions do not match the header.");
    return [
      `${counted(transactionHashes.length, "hash", "hashes")} of transactions, in order, hash to the value in the header.`,
    ];
  });
  await step("Header", () => {
    const read = readHeader(bytes);
    require(hashOf(bytes) === hash, "The header has another hash.");
    const isShown =
      Number(read.number) === header.number &&
      read.stateRoot === header.stateRoot &&
      read.previousHash === header.previousHash &&
      read.transactionsHash === header.transactionsHash &&
      read.proposer === header.proposer &&
      Number(read.timestampMs) === header.timestamp &&
      (read.commitmentRoot ?? null) === header.commitmentRoot;
    require(isShown, "The signed header differs from the one on this page.");
    return [`The ${bytes.length} signed bytes are the header on this page, and have the hash `, shortHash(hash)];
  });
  await step("Authority", async () => {
    const { authorities, genesisHash } = await proofs.network();
    require(authorities.has(header.proposer), "The signer is no authority of the trusted genesis.");
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
      // Without a statement, the age is that of the latest block, as in proofs.
      const latestHeader = checkHeader(base64Decode(latest.header), base64Decode(latest.signature), network);
      require(Number(latestHeader.number) >= header.number, "The latest block is an earlier one.");
      return [
        "An authority signed block ",
        blockLink(Number(latestHeader.number)),
        " ",
        timeAgo(Number(latestHeader.fields.timestampMs)),
      ];
    }
    const signed = { statement: base64Decode(head.statement), signature: base64Decode(head.signature) };
    const statement = checkSignedHead(signed as Parameters<typeof checkSignedHead>[0], network);
    require(Number(statement.number) >= header.number, "An authority signed that an earlier block is the latest.");
    require(Number(statement.number) > header.number ||
      statement.hash === hash, "An authority signed another block with this number.");
    return [
      "An authority signed ",
      timeAgo(Number(statement.timestampMs)),
      " that block ",
      blockLink(Number(statement.number)),
      " is the latest",
    ];
  });
  return steps;
}
