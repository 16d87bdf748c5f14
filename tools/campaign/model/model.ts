/**
 * Model of the expected behavior of a network. Records submissions, blocks and reads, and finds contradictions, such as
 * an acknowledged transaction that was lost.
 */
import { type ChainFault, createObservedChain } from "./blocks.js";
import type {
  SubmitOutcome,
  ReadContext,
  Column,
  ReportedStatus,
  Finding,
  Head,
  VerifiedBlock,
  SentTransaction,
} from "./history.js";
import { isDeepStrictEqual } from "node:util";
import { createProgramStates } from "./programs.js";
import { type Attempt, type Sent, wasOvertaken, wasAccepted } from "./sent.js";

export type Model = ReturnType<typeof createModel>;

/** Read of a document, checked once the blocks up to it are known. */
interface Read {
  readonly node: number;
  readonly address: string;
  readonly heads: readonly [number, number];
  readonly document: unknown;
  /** True if the network was at rest. */
  readonly isRest: boolean;
}

export function createModel(nameOf: (node: number) => string, genesisHash: string) {
  const chain = createObservedChain(nameOf, genesisHash);
  const states = createProgramStates();
  const transactions = new Map<string, Sent>();
  const bySender = new Map<string, Sent[]>();
  const open = new Set<Sent>();
  const included: Sent[] = [];
  const reads: Read[] = [];
  const findings: Finding[] = [];
  const reportedKeys = new Set<string>();
  let [round, events, rejected] = [0, 0, 0];

  /** Adds a finding. Duplicates are ignored. */
  function find(column: Column, sentence: string): void {
    if (!reportedKeys.has(column + sentence)) {
      reportedKeys.add(column + sentence);
      findings.push({ column, sentence, round });
    }
  }
  function reportFault(fault: ChainFault | undefined): void {
    if (fault !== undefined) {
      find(fault.column, fault.sentence);
    }
  }

  /** Applies the transactions of a new block to the expected state. */
  function include(block: VerifiedBlock): void {
    for (const hash of block.transactions) {
      const sent = transactions.get(hash);
      if (sent === undefined) {
        find("torn", `Block ${block.number} has ${hash}, which nobody sent.`);
        continue;
      }
      if (sent.includedIn !== undefined) {
        find("doubled", `${hash} is in the blocks ${sent.includedIn} and ${block.number}.`);
        continue;
      }
      sent.includedIn = block.number;
      included.push(sent);
      const reason = states.apply(sent.change, block.number);
      if (reason !== undefined) {
        find("torn", `Block ${block.number} has ${hash}, which cannot be applied: ${reason}`);
      }
    }
  }

  /** Compares the reported status of a transaction with the block that contains it. */
  function checkIncluded(sent: Sent): void {
    const { hash, includedIn, reportedIn, rejection } = sent;
    if (reportedIn !== undefined && reportedIn !== includedIn) {
      const current = includedIn === undefined ? "it is in none" : `it is in block ${includedIn}`;
      find(
        includedIn === undefined ? "lost" : "doubled",
        `${hash} was told to be in block ${reportedIn}, and ${current}.`,
      );
    }
    if (rejection !== undefined && includedIn !== undefined) {
      const nodeName = nameOf(rejection.node);
      find("served wrong", `${hash} is in block ${includedIn}, and ${nodeName} rejected it: ${rejection.reason}`);
    }
  }

  /** Checks a transaction that is in no block when the network is at rest. */
  function judgeNotIncluded(sent: Sent, nowMs: number): void {
    const { rejection, hash } = sent;
    if (rejection !== undefined) {
      judgeRejection(sent, rejection.reason, nowMs);
    } else if (wasAccepted(sent, chain.generationOf)) {
      const acceptors = sent.attempts.filter(({ answer }) => answer === "taken").map(({ node }) => nameOf(node));
      find("lost", `${hash} (nonce ${sent.nonce}) was taken by ${acceptors.join(" and ")}, and nobody knows it.`);
    }
    sent.isResolved = true;
  }

  function judgeRejection(sent: Sent, reason: string, nowMs: number): void {
    const { hash, nonce, sender, change, expiresMs } = sent;
    rejected++;
    const senderTransactions = bySender.get(sender)!;
    if (/nonce/i.test(reason)) {
      const later = senderTransactions.filter((other) => other.nonce > nonce && other.includedIn !== undefined);
      if (wasOvertaken(sent, later)) {
        find("out of order", `${hash} (nonce ${nonce}) was overtaken: ${reason}`);
      }
    } else if (/expired/i.test(reason)) {
      if (nowMs < expiresMs) {
        find("lost", `${hash} was rejected before its time: ${reason}`);
      }
    } else if (!senderTransactions.some((other) => other.nonce < nonce && dependsOn(change, other))) {
      find("lost", `${hash} was rejected, and nothing was wrong with it: ${reason}`);
    }
  }

  function judgeReads(): void {
    for (const { node, address, heads, document, isRest } of reads.splice(0)) {
      if (heads[1] > chain.height) {
        continue;
      }
      // A node applies a block before it reports the block as its head; at rest there is no next block.
      const possible = states.between(address, heads[0], heads[1] + 1);
      if (!possible.some((candidate) => isDeepStrictEqual(candidate, document))) {
        const period = heads[0] === heads[1] ? `block ${heads[0]}` : `blocks ${heads[0]} to ${heads[1]}`;
        const difference = describeDifference(document, possible.at(-1));
        find(isRest ? "torn" : "served wrong", `${address} on ${nameOf(node)} at ${period} ${difference}`);
      }
    }
  }

  return {
    findings: findings as readonly Finding[],
    find,
    /** Sets the round of later findings. */
    setRound: (current: number) => void (round = current),
    /** Records the start of a submission. Returns the function that records its outcome. */
    submit(transaction: SentTransaction, node: number): (answer: SubmitOutcome) => void {
      let sent = transactions.get(transaction.hash);
      if (sent === undefined) {
        sent = { ...transaction, attempts: [], isResolved: false };
        transactions.set(sent.hash, sent);
        bySender.set(sent.sender, bySender.get(sent.sender) ?? []);
        bySender.get(sent.sender)!.push(sent);
        open.add(sent);
      }
      const generation = chain.generationOf(node);
      const attempt: Attempt = { node, generation, atEvent: events++, answeredAtEvent: Infinity, answer: "unknown" };
      sent.attempts.push(attempt);
      return (answer) => {
        Object.assign(attempt, { answer, answeredAtEvent: events++ });
      };
    },
    /** Returns the state of a node before a read. Call it before each request. */
    startRead: chain.startRead,
    recordHead: (asked: ReadContext, head: Head) => reportFault(chain.recordHead(asked, head)),
    recordBlock(node: number, block: VerifiedBlock): void {
      const before = chain.height;
      reportFault(chain.recordBlock(node, block));
      if (chain.height > before) {
        include(block);
      }
    },
    /** Records a reported status. The head of the node was at least `headBefore` at the time of the request. */
    recordStatus({ node, generation }: ReadContext, headBefore: number, hash: string, fate: ReportedStatus): void {
      const sent = transactions.get(hash);
      if (sent === undefined || generation !== chain.generationOf(node)) {
        return;
      }
      const knownBlock = sent.includedIn ?? sent.reportedIn;
      if (fate.status === "included") {
        if (sent.includedIn !== undefined && sent.includedIn !== fate.block) {
          const statement = `${nameOf(node)} says that it is in block ${fate.block}`;
          find("served wrong", `${hash} is in block ${sent.includedIn}, and ${statement}.`);
        } else if (sent.reportedIn !== undefined && sent.reportedIn !== fate.block) {
          find(
            "doubled",
            `${hash} was told to be in block ${sent.reportedIn}, and by ${nameOf(node)} in ${fate.block}.`,
          );
        }
        sent.reportedIn ??= fate.block;
      } else if (knownBlock !== undefined && headBefore >= knownBlock) {
        const headStatement = `${nameOf(node)} has block ${headBefore}`;
        find(
          "served wrong",
          `${hash} is in block ${knownBlock}, ${headStatement}, and says that it is ${fate.status}.`,
        );
      }
      if (fate.status === "rejected") {
        sent.rejection ??= { reason: fate.reason, node };
      }
    },
    /** Records a document that a node returned while its head was between these; undefined for a missing program. */
    recordDocument(
      { node, generation }: ReadContext,
      heads: readonly [before: number, after: number],
      address: string,
      document: unknown,
    ): void {
      if (generation === chain.generationOf(node)) {
        const isRest = heads[0] === heads[1] && heads[0] === chain.height;
        reads.push({ node, address, heads, document, isRest });
      }
    },
    /** Records the number of commitments of a node at rest. */
    recordLeafCount(node: number, count: number): void {
      if (count !== states.leafCount()) {
        find("torn", `${nameOf(node)} has ${count} commitments; ${states.leafCount()} are in blocks.`);
      }
    },
    resetNode: chain.resetNode,
    /** Checks all open transactions. Call it at rest, after all blocks and statuses were recorded. */
    judge(nowMs: number): void {
      judgeReads();
      for (const sent of open) {
        if (sent.includedIn === undefined && sent.reportedIn === undefined) {
          judgeNotIncluded(sent, nowMs);
        } else {
          sent.isResolved = true;
        }
        checkIncluded(sent);
        open.delete(sent);
      }
    },
    /** Returns the transactions without a final outcome. */
    open: (): Sent[] => [...open],
    /** Returns the expected document of a program; undefined if there is none. */
    document: states.latest,
    get height() {
      return chain.height;
    },
    get addresses() {
      return states.addresses;
    },
    /** Transactions in blocks, in their order. */
    included: included as readonly Sent[],
    get counts() {
      const transactionsSent = [...transactions.values()];
      const taken = transactionsSent.filter(({ attempts }) => attempts.some(({ answer }) => answer === "taken")).length;
      return { sent: transactionsSent.length, taken, included: included.length, rejected };
    },
  };
}

/** Number of characters of a document in a finding. */
const excerptLength = 160;

/** Describes the first difference between a document and the expected one. */
function describeDifference(document: unknown, expected: unknown): string {
  const textOf = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));
  const [actual, expectedText] = [textOf(document), textOf(expected)];
  const same = Array.from({ length: actual.length }, (_, i) => i).findIndex((i) => actual[i] !== expectedText[i]);
  const from = Math.max(0, (same === -1 ? expectedText.length : same) - 30);
  return `has ${actual.slice(from, from + excerptLength)} at ${from} where ${expectedText.slice(from, from + excerptLength)} must be.`;
}

/** Returns true if a change can fail because another one is in no block. */
function dependsOn(change: Sent["change"], other: Sent): boolean {
  return (
    other.includedIn === undefined &&
    change.kind !== "commit" &&
    other.change.kind !== "commit" &&
    other.change.address === change.address
  );
}
