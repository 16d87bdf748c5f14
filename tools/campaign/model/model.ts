/** What a network must keep to, by what it has acknowledged: everything is told to the model, and it says what is wrong. */
import { type ChainFault, createSeenChain } from "./blocks.js";
import type { Answer, Asked, Column, Fate, Finding, Head, JsonObject, SeenBlock, SentTransaction } from "./history.js";
import { isDeepStrictEqual } from "node:util";
import { createProgramStates } from "./programs.js";
import { type Attempt, type Sent, wasOvertaken, wasTaken } from "./sent.js";

/** The model. */
export interface Model {
  readonly findings: readonly Finding[];
  /** What is found from now on belongs to this round. */
  setRound(round: number): void;
  /** What is found by others. */
  readonly find: (column: Column, sentence: string) => void;
  /** A transaction is handed in; gives what hears of the answer. */
  submit(transaction: SentTransaction, node: number): (answer: Answer) => void;
  /** To be called before a node is asked for anything. */
  readonly asking: (node: number) => Asked;
  sawHead(asked: Asked, head: Head): void;
  sawBlock(node: number, block: SeenBlock): void;
  /** A node whose head was at least this one says where a transaction is. */
  sawFate(asked: Asked, headBefore: number, hash: string, fate: Fate): void;
  /** A node whose head was between these gave a document; undefined for a program that is not there. */
  sawDocument(asked: Asked, heads: readonly [before: number, after: number], address: string, document: unknown): void;
  /** A node at rest has so many commitments. */
  sawLeaves(node: number, count: number): void;
  /** The database of a node is taken away. */
  readonly forget: (node: number) => void;
  /** The network is at rest, and all blocks and fates were told: judges what became of what is open. */
  judge(nowMs: number): void;
  /** Transactions of which it is not known yet what became of them. */
  open(): readonly Sent[];
  /** A program as it must be now. */
  readonly document: (address: string) => JsonObject | undefined;
  readonly height: number;
  readonly addresses: readonly string[];
  /** The newest transactions that are in blocks, and all that were sent. */
  readonly included: readonly Sent[];
  readonly counts: Readonly<Record<"sent" | "taken" | "included" | "rejected", number>>;
}

/** A read that can be judged when the blocks up to it are known. */
interface Read {
  readonly node: number;
  readonly address: string;
  readonly heads: readonly [number, number];
  readonly document: unknown;
  /** Whether all was at rest. */
  readonly isRest: boolean;
}

/** Builds it. */
export function createModel(nameOf: (node: number) => string, genesisHash: string): Model {
  const chain = createSeenChain(nameOf, genesisHash);
  const states = createProgramStates();
  const transactions = new Map<string, Sent>();
  const bySender = new Map<string, Sent[]>();
  const open = new Set<Sent>();
  const included: Sent[] = [];
  const reads: Read[] = [];
  const findings: Finding[] = [];
  const told = new Set<string>();
  let [round, events, rejected] = [0, 0, 0];

  function find(column: Column, sentence: string): void {
    if (!told.has(column + sentence)) {
      told.add(column + sentence);
      findings.push({ column, sentence, round });
    }
  }
  function findFault(fault: ChainFault | undefined): void {
    if (fault !== undefined) {
      find(fault.column, fault.sentence);
    }
  }

  /** A block that is new to everybody: its transactions are in, and what they change is changed. */
  function include(block: SeenBlock): void {
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
      const why = states.apply(sent.change, block.number);
      if (why !== undefined) {
        find("torn", `Block ${block.number} has ${hash}, which cannot be applied: ${why}`);
      }
    }
  }

  /** What a node said of a transaction, against the block that has it. */
  function checkIncluded(sent: Sent): void {
    const { hash, includedIn, toldIn, rejection } = sent;
    if (toldIn !== undefined && toldIn !== includedIn) {
      const now = includedIn === undefined ? "it is in none" : `it is in block ${includedIn}`;
      find(includedIn === undefined ? "lost" : "doubled", `${hash} was told to be in block ${toldIn}, and ${now}.`);
    }
    if (rejection !== undefined && includedIn !== undefined) {
      const who = nameOf(rejection.node);
      find("served wrong", `${hash} is in block ${includedIn}, and ${who} rejected it: ${rejection.reason}`);
    }
  }

  /** What became of one that is in no block, when all is at rest. */
  function judgeLeftOut(sent: Sent, nowMs: number): void {
    const { rejection, hash } = sent;
    if (rejection !== undefined) {
      judgeRejection(sent, rejection.reason, nowMs);
    } else if (wasTaken(sent, chain.lifeOf)) {
      const takers = sent.attempts.filter(({ answer }) => answer === "taken").map(({ node }) => nameOf(node));
      find("lost", `${hash} (nonce ${sent.nonce}) was taken by ${takers.join(" and ")}, and nobody knows it.`);
    }
    sent.isSettled = true;
  }

  function judgeRejection(sent: Sent, reason: string, nowMs: number): void {
    const { hash, nonce, sender, change, expiresMs } = sent;
    rejected++;
    const others = bySender.get(sender)!;
    if (/nonce/i.test(reason)) {
      const later = others.filter((other) => other.nonce > nonce && other.includedIn !== undefined);
      if (wasOvertaken(sent, later)) {
        find("out of order", `${hash} (nonce ${nonce}) was overtaken: ${reason}`);
      }
    } else if (/expired/i.test(reason)) {
      if (nowMs < expiresMs) {
        find("lost", `${hash} was rejected before its time: ${reason}`);
      }
    } else if (!others.some((other) => other.nonce < nonce && dependsOn(change, other))) {
      find("lost", `${hash} was rejected, and nothing was wrong with it: ${reason}`);
    }
  }

  function judgeReads(): void {
    for (const { node, address, heads, document, isRest } of reads.splice(0)) {
      if (heads[1] > chain.height) {
        continue;
      }
      // What a block changes is there before the node tells of it; at rest there is no next block.
      const possible = states.between(address, heads[0], heads[1] + 1);
      if (!possible.some((one) => isDeepStrictEqual(one, document))) {
        const when = heads[0] === heads[1] ? `block ${heads[0]}` : `blocks ${heads[0]} to ${heads[1]}`;
        const unlike = describeDifference(document, possible.at(-1));
        find(isRest ? "torn" : "served wrong", `${address} on ${nameOf(node)} at ${when} ${unlike}`);
      }
    }
  }

  return {
    findings,
    find,
    setRound: (now) => void (round = now),
    submit(transaction, node) {
      let sent = transactions.get(transaction.hash);
      if (sent === undefined) {
        sent = { ...transaction, attempts: [], isSettled: false };
        transactions.set(sent.hash, sent);
        bySender.set(sent.sender, bySender.get(sent.sender) ?? []);
        bySender.get(sent.sender)!.push(sent);
        open.add(sent);
      }
      const life = chain.lifeOf(node);
      const attempt: Attempt = { node, life, atEvent: events++, answeredAtEvent: Infinity, answer: "unknown" };
      sent.attempts.push(attempt);
      return (answer) => {
        Object.assign(attempt, { answer, answeredAtEvent: events++ });
      };
    },
    asking: chain.asking,
    sawHead: (asked, head) => findFault(chain.sawHead(asked, head)),
    sawBlock(node, block) {
      const before = chain.height;
      findFault(chain.sawBlock(node, block));
      if (chain.height > before) {
        include(block);
      }
    },
    sawFate({ node, life }, headBefore, hash, fate) {
      const sent = transactions.get(hash);
      if (sent === undefined || life !== chain.lifeOf(node)) {
        return;
      }
      const at = sent.includedIn ?? sent.toldIn;
      if (fate.status === "included") {
        if (sent.includedIn !== undefined && sent.includedIn !== fate.block) {
          const said = `${nameOf(node)} says that it is in block ${fate.block}`;
          find("served wrong", `${hash} is in block ${sent.includedIn}, and ${said}.`);
        } else if (sent.toldIn !== undefined && sent.toldIn !== fate.block) {
          find("doubled", `${hash} was told to be in block ${sent.toldIn}, and by ${nameOf(node)} in ${fate.block}.`);
        }
        sent.toldIn ??= fate.block;
      } else if (at !== undefined && headBefore >= at) {
        const has = `${nameOf(node)} has block ${headBefore}`;
        find("served wrong", `${hash} is in block ${at}, ${has}, and says that it is ${fate.status}.`);
      }
      if (fate.status === "rejected") {
        sent.rejection ??= { reason: fate.reason, node };
      }
    },
    sawDocument({ node, life }, heads, address, document) {
      if (life === chain.lifeOf(node)) {
        const isRest = heads[0] === heads[1] && heads[0] === chain.height;
        reads.push({ node, address, heads, document, isRest });
      }
    },
    sawLeaves(node, count) {
      if (count !== states.leafCount()) {
        find("torn", `${nameOf(node)} has ${count} commitments; ${states.leafCount()} are in blocks.`);
      }
    },
    forget: chain.forget,
    judge(nowMs) {
      judgeReads();
      for (const sent of open) {
        if (sent.includedIn === undefined && sent.toldIn === undefined) {
          judgeLeftOut(sent, nowMs);
        } else {
          sent.isSettled = true;
        }
        checkIncluded(sent);
        open.delete(sent);
      }
    },
    open: () => [...open],
    document: states.latest,
    get height() {
      return chain.height;
    },
    get addresses() {
      return states.addresses;
    },
    included,
    get counts() {
      const all = [...transactions.values()];
      const taken = all.filter(({ attempts }) => attempts.some(({ answer }) => answer === "taken")).length;
      return { sent: all.length, taken, included: included.length, rejected };
    },
  };
}

/** How many characters of a document are shown. */
const shown = 160;

/** What a document is, and what it must be, from a little before where they differ. */
function describeDifference(document: unknown, expected: unknown): string {
  const textOf = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));
  const [is, must] = [textOf(document), textOf(expected)];
  const same = Array.from({ length: is.length }, (_, i) => i).findIndex((i) => is[i] !== must[i]);
  const from = Math.max(0, (same === -1 ? must.length : same) - 30);
  return `has ${is.slice(from, from + shown)} at ${from} where ${must.slice(from, from + shown)} must be.`;
}

/** Whether a change can fail since another one, which is in no block, was not made. */
function dependsOn(change: Sent["change"], other: Sent): boolean {
  return (
    other.includedIn === undefined &&
    change.kind !== "commit" &&
    other.change.kind !== "commit" &&
    other.change.address === change.address
  );
}
