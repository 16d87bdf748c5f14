/** The model, told of networks that went wrong: it must find each fault, and none where all was well. */
import test from "ava";
import type {
  SubmitOutcome,
  Change,
  Column,
  ReportedStatus,
  SentTransaction,
} from "../../tools/campaign/model/history.js";
import { createModel, type Model } from "../../tools/campaign/model/model.js";

const names = ["authority", "follower 1", "follower 2"];
const genesisHash = "genesis";
const nowMs = 1_000;
const expiresMs = 2_000;
const address = "stor-1";

/** A network as the model is told of it. */
function tell() {
  const model = createModel((node) => names[node]!, genesisHash);
  const hashAt = (number: number): string => (number === 0 ? genesisHash : `block ${number}`);
  const head = (node: number, number: number, hash = hashAt(number)): void =>
    model.recordHead(model.startRead(node), { number, hash });
  return {
    model,
    head,
    send: (
      hash: string,
      nonce: number,
      change: Change,
      node = 0,
      answer: SubmitOutcome = "taken",
      sender = "alice",
    ): void => {
      const sent: SentTransaction = { hash, sender, nonce, expiresMs, change };
      model.submit(sent, node)(answer);
    },
    block: (number: number, transactions: readonly string[], hash = hashAt(number), node = 0): void => {
      model.recordBlock(node, { number, hash, previousHash: hashAt(number - 1), transactions });
    },
    fate: (node: number, hash: string, fate: ReportedStatus, headBefore = model.height): void => {
      model.recordStatus(model.startRead(node), headBefore, hash, fate);
    },
    document: (
      node: number,
      document: unknown,
      heads: readonly [number, number] = [model.height, model.height],
    ): void => {
      model.recordDocument(model.startRead(node), heads, address, document);
    },
  };
}

type Told = ReturnType<typeof tell>;

const create: Change = { kind: "create", address, document: { log: [] } };
const append = (value: number): Change => ({ kind: "append", address, field: "log", value });
const commitment: Change = { kind: "commit", commitment: "0x01" };
const included = (block: number): ReportedStatus => ({ status: "included", block });

/** A program that was made, changed and deleted, in three blocks, with nothing wrong. */
function tellWell(told: Told): void {
  told.send("a", 1, create);
  told.send("b", 2, append(1));
  told.send("c", 3, commitment);
  told.fate(1, "a", { status: "pending" }, 0);
  told.block(1, ["a"]);
  told.block(2, ["b", "c"]);
  told.head(0, 2);
  told.head(1, 1);
  told.fate(0, "a", included(1));
  told.fate(1, "b", { status: "pending" }, 1);
  told.document(0, { log: [1] }, [2, 2]);
  told.document(1, { log: [] }, [1, 2]);
  told.document(1, { log: [1] }, [1, 2]);
  told.document(2, undefined, [0, 1]);
  told.model.recordLeafCount(0, 1);
}

const whatIsWrong = ({ findings }: Model): Column[] => findings.map(({ column }) => column);

/** Tells of something wrong after all was well; the model finds this, and that alone. */
const finds = test.macro({
  exec(t, column: Column, wrong: (told: Told) => void) {
    const told = tell();
    tellWell(told);
    told.model.judge(nowMs);
    t.deepEqual(whatIsWrong(told.model), [], "all was well");
    told.model.setRound(7);
    wrong(told);
    told.model.judge(nowMs);
    t.deepEqual(whatIsWrong(told.model), [column], JSON.stringify(told.model.findings));
    t.is(told.model.findings[0]!.round, 7);
  },
  title: (title, column) => `${column}: ${title}`,
});

/** Tells of something that only looks wrong. */
const findsNothing = test.macro({
  exec(t, well: (told: Told) => void) {
    const told = tell();
    tellWell(told);
    well(told);
    told.model.judge(nowMs);
    t.deepEqual(told.model.findings, []);
  },
  title: (title) => `nothing: ${title}`,
});

test("acknowledged, and nobody knows it", finds, "lost", ({ send, fate }) => {
  send("d", 4, append(2));
  fate(0, "d", { status: "not found" });
});
test("told to be in a block, and in none", finds, "lost", ({ send, fate, block }) => {
  send("d", 4, append(2));
  fate(0, "d", included(3));
  block(3, []);
});
test("a head that went back", finds, "lost", ({ head }) => head(1, 0));
test("rejected, and nothing was wrong with it", finds, "lost", ({ send, fate }) => {
  send("d", 4, append(2));
  fate(0, "d", { status: "rejected", reason: "There is no program at this address." });
});
test("expired before its time", finds, "lost", ({ send, fate }) => {
  send("d", 4, append(2));
  fate(0, "d", { status: "rejected", reason: "The transaction expired at …" });
});
test("one number with two blocks, from two nodes", finds, "doubled", ({ head }) => head(2, 2, "another block 2"));
test("one number with two blocks, read as a whole", finds, "doubled", ({ block }) =>
  block(2, ["b", "c"], "another", 1),
);
test("a transaction in two blocks", finds, "doubled", ({ block }) => block(3, ["b"]));
test("told to be in two blocks", finds, "doubled", ({ send, fate, block }) => {
  send("d", 4, append(2));
  fate(0, "d", included(3));
  fate(1, "d", included(4));
  block(3, ["d"]);
});
test("told to be in one block, and in another", finds, "doubled", ({ send, fate, block }) => {
  send("d", 4, append(2));
  fate(0, "d", included(4));
  block(3, ["d"]);
});
test("told to be in another block than it is", finds, "served wrong", ({ fate }) => fate(1, "b", included(1)));
test("a change that did not reach the program", finds, "torn", ({ document }) => document(1, { log: [] }));
test("a change without its block", finds, "torn", ({ document }) => document(1, { log: [1, 2] }));
test("a program that is gone", finds, "torn", ({ document }) => document(1, undefined));
test("commitments that no block has", finds, "torn", ({ model }) => model.recordLeafCount(1, 2));
test("a block that does not follow", finds, "torn", ({ block }) => block(4, []));
test("a block with what nobody sent", finds, "torn", ({ block }) => block(3, ["of nobody"]));
test("a block with what cannot be applied", finds, "torn", ({ send, block }) => {
  send("d", 4, { kind: "delete field", address, field: "none" });
  block(3, ["d"]);
});
test("overtaken at the node that had acknowledged it", finds, "out of order", ({ send, block, fate }) => {
  send("d", 4, append(2), 1);
  send("e", 5, append(3), 1);
  block(3, ["e"]);
  fate(0, "d", { status: "rejected", reason: "The nonce 4 is already used: the sender's next nonce must be above 5." });
});
test("an answer of before the block", finds, "served wrong", ({ fate }) => fate(1, "b", { status: "pending" }, 2));
test("an included transaction that is not found", finds, "served wrong", ({ fate }) =>
  fate(1, "b", { status: "not found" }, 2),
);
test("rejected and included", finds, "served wrong", ({ send, fate, block }) => {
  send("d", 4, append(2));
  fate(1, "d", { status: "rejected", reason: "The program is not there." });
  block(3, ["d"]);
});
test("a document of no block in this time", finds, "served wrong", ({ document, send, block }) => {
  send("d", 4, append(2));
  send("e", 5, append(3));
  block(3, ["d"]);
  block(4, ["e"]);
  document(1, { log: [1] }, [3, 4]);
});

test("what was refused is not there", findsNothing, ({ send, fate }) => {
  send("d", 4, append(2), 0, "refused");
  fate(0, "d", { status: "not found" });
});
test("what was not answered is there, or is not", findsNothing, ({ send, fate, block }) => {
  send("d", 4, append(2), 0, "unknown");
  send("e", 5, append(3), 0, "refused for now");
  block(3, ["d"]);
  fate(0, "e", { status: "not found" });
});
test("overtaken over another node, which did not know it", findsNothing, ({ send, block, fate }) => {
  send("d", 4, append(2), 1);
  send("e", 5, append(3), 2);
  block(3, ["e"]);
  fate(0, "d", { status: "rejected", reason: "The nonce 4 is used." });
});
test("rejected since what it needs is in no block", findsNothing, ({ send, fate }) => {
  send("d", 4, { kind: "create", address: "stor-2", document: {} }, 0, "unknown");
  send("e", 5, { kind: "set", address: "stor-2", field: "a", value: 1 });
  fate(0, "e", { status: "rejected", reason: "There is no program at this address." });
});
test("expired in its time", findsNothing, ({ send, fate, model }) => {
  send("d", 4, append(2));
  fate(0, "d", { status: "rejected", reason: "The transaction has expired." });
  model.judge(expiresMs + 1);
});
test("a node whose database was taken away", findsNothing, ({ model, send, head, fate }) => {
  send("d", 4, append(2), 1);
  model.resetNode(1);
  head(1, 0);
  fate(1, "a", { status: "not found" }, 0);
  fate(0, "d", { status: "not found" });
});
test("an answer that was asked for before the database was taken away", findsNothing, ({ model }) => {
  const asked = model.startRead(1);
  model.resetNode(1);
  model.recordHead(asked, { number: 1, hash: "block 1" });
  model.recordStatus(asked, 2, "b", { status: "not found" });
  model.recordHead(model.startRead(1), { number: 0, hash: genesisHash });
});
