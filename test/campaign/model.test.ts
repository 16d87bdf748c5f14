/** The model of a campaign: it finds each kind of fault in a history, and none in a correct one. */
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

/** Creates a model, and functions that record a history. */
function startHistory() {
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
      outcome: SubmitOutcome = "taken",
      sender = "alice",
    ): void => {
      const sent: SentTransaction = { hash, sender, nonce, expiresMs, change };
      model.submit(sent, node)(outcome);
    },
    block: (number: number, transactions: readonly string[], hash = hashAt(number), node = 0): void => {
      model.recordBlock(node, { number, hash, previousHash: hashAt(number - 1), transactions });
    },
    status: (node: number, hash: string, reported: ReportedStatus, headBefore = model.height): void => {
      model.recordStatus(model.startRead(node), headBefore, hash, reported);
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

type History = ReturnType<typeof startHistory>;

const create: Change = { kind: "create", address, document: { log: [] } };
const append = (value: number): Change => ({ kind: "append", address, field: "log", value });
const commitment: Change = { kind: "commit", commitment: "0x01" };
const included = (block: number): ReportedStatus => ({ status: "included", block });

/** Records a correct history of a program and a commitment in two blocks. */
function recordCorrect(history: History): void {
  history.send("a", 1, create);
  history.send("b", 2, append(1));
  history.send("c", 3, commitment);
  history.status(1, "a", { status: "pending" }, 0);
  history.block(1, ["a"]);
  history.block(2, ["b", "c"]);
  history.head(0, 2);
  history.head(1, 1);
  history.status(0, "a", included(1));
  history.status(1, "b", { status: "pending" }, 1);
  history.document(0, { log: [1] }, [2, 2]);
  history.document(1, { log: [] }, [1, 2]);
  history.document(1, { log: [1] }, [1, 2]);
  history.document(2, undefined, [0, 1]);
  history.model.recordLeafCount(0, 1);
}

const columnsOf = ({ findings }: Model): Column[] => findings.map(({ column }) => column);

/** Records a fault after a correct history, and expects exactly this finding. */
const finds = test.macro({
  exec(t, column: Column, recordFault: (history: History) => void) {
    const history = startHistory();
    recordCorrect(history);
    history.model.judge(nowMs);
    t.deepEqual(columnsOf(history.model), [], "the correct history");
    history.model.setRound(7);
    recordFault(history);
    history.model.judge(nowMs);
    t.deepEqual(columnsOf(history.model), [column], JSON.stringify(history.model.findings));
    t.is(history.model.findings[0]!.round, 7);
  },
  title: (title, column) => `${column}: ${title}`,
});

/** Records something that only looks wrong, and expects no finding. */
const findsNothing = test.macro({
  exec(t, record: (history: History) => void) {
    const history = startHistory();
    recordCorrect(history);
    record(history);
    history.model.judge(nowMs);
    t.deepEqual(history.model.findings, []);
  },
  title: (title) => `nothing: ${title}`,
});

test("acknowledged, but not found", finds, "lost", ({ send, status }) => {
  send("d", 4, append(2));
  status(0, "d", { status: "not found" });
});
test("reported in a block, but in none", finds, "lost", ({ send, status, block }) => {
  send("d", 4, append(2));
  status(0, "d", included(3));
  block(3, []);
});
test("a head that moves back", finds, "lost", ({ head }) => head(1, 0));
test("rejected although valid", finds, "lost", ({ send, status }) => {
  send("d", 4, append(2));
  status(0, "d", { status: "rejected", reason: "There is no program at this address." });
});
test("expired too early", finds, "lost", ({ send, status }) => {
  send("d", 4, append(2));
  status(0, "d", { status: "rejected", reason: "The transaction expired at …" });
});
test("two blocks with one number, from two heads", finds, "doubled", ({ head }) => head(2, 2, "another block 2"));
test("two blocks with one number, from two reads", finds, "doubled", ({ block }) => block(2, ["b", "c"], "another", 1));
test("a transaction in two blocks", finds, "doubled", ({ block }) => block(3, ["b"]));
test("reported in two blocks", finds, "doubled", ({ send, status, block }) => {
  send("d", 4, append(2));
  status(0, "d", included(3));
  status(1, "d", included(4));
  block(3, ["d"]);
});
test("reported in another block than its own", finds, "doubled", ({ send, status, block }) => {
  send("d", 4, append(2));
  status(0, "d", included(4));
  block(3, ["d"]);
});
test("reported later in another block than its own", finds, "served wrong", ({ status }) =>
  status(1, "b", included(1)),
);
test("a change that did not reach the program", finds, "torn", ({ document }) => document(1, { log: [] }));
test("a change without its block", finds, "torn", ({ document }) => document(1, { log: [1, 2] }));
test("a missing program", finds, "torn", ({ document }) => document(1, undefined));
test("more commitments than in blocks", finds, "torn", ({ model }) => model.recordLeafCount(1, 2));
test("a block that does not follow", finds, "torn", ({ block }) => block(4, []));
test("a block with an unknown transaction", finds, "torn", ({ block }) => block(3, ["unknown"]));
test("a block with an invalid transaction", finds, "torn", ({ send, block }) => {
  send("d", 4, { kind: "delete field", address, field: "none" });
  block(3, ["d"]);
});
test("overtaken at the node that acknowledged it", finds, "out of order", ({ send, block, status }) => {
  send("d", 4, append(2), 1);
  send("e", 5, append(3), 1);
  block(3, ["e"]);
  status(0, "d", {
    status: "rejected",
    reason: "The nonce 4 is already used: the sender's next nonce must be above 5.",
  });
});
test("a status from before the block", finds, "served wrong", ({ status }) => status(1, "b", { status: "pending" }, 2));
test("an included transaction that is not found", finds, "served wrong", ({ status }) =>
  status(1, "b", { status: "not found" }, 2),
);
test("rejected and included", finds, "served wrong", ({ send, status, block }) => {
  send("d", 4, append(2));
  status(1, "d", { status: "rejected", reason: "The program is not there." });
  block(3, ["d"]);
});
test("a document of no block in the time of the read", finds, "served wrong", ({ document, send, block }) => {
  send("d", 4, append(2));
  send("e", 5, append(3));
  block(3, ["d"]);
  block(4, ["e"]);
  document(1, { log: [1] }, [3, 4]);
});

test("a rejected transaction is missing", findsNothing, ({ send, status }) => {
  send("d", 4, append(2), 0, "refused");
  status(0, "d", { status: "not found" });
});
test("transactions without a response are included, or not", findsNothing, ({ send, status, block }) => {
  send("d", 4, append(2), 0, "unknown");
  send("e", 5, append(3), 0, "refused for now");
  block(3, ["d"]);
  status(0, "e", { status: "not found" });
});
test("overtaken by one sent to another node", findsNothing, ({ send, block, status }) => {
  send("d", 4, append(2), 1);
  send("e", 5, append(3), 2);
  block(3, ["e"]);
  status(0, "d", { status: "rejected", reason: "The nonce 4 is used." });
});
test("rejected because its program is in no block", findsNothing, ({ send, status }) => {
  send("d", 4, { kind: "create", address: "stor-2", document: {} }, 0, "unknown");
  send("e", 5, { kind: "set", address: "stor-2", field: "a", value: 1 });
  status(0, "e", { status: "rejected", reason: "There is no program at this address." });
});
test("expired on time", findsNothing, ({ send, status, model }) => {
  send("d", 4, append(2));
  status(0, "d", { status: "rejected", reason: "The transaction has expired." });
  model.judge(expiresMs + 1);
});
test("a node that lost its database", findsNothing, ({ model, send, head, status }) => {
  send("d", 4, append(2), 1);
  model.resetNode(1);
  head(1, 0);
  status(1, "a", { status: "not found" }, 0);
  status(0, "d", { status: "not found" });
});
test("a response to a read from before the database was lost", findsNothing, ({ model }) => {
  const read = model.startRead(1);
  model.resetNode(1);
  model.recordHead(read, { number: 1, hash: "block 1" });
  model.recordStatus(read, 2, "b", { status: "not found" });
  model.recordHead(model.startRead(1), { number: 0, hash: genesisHash });
});
