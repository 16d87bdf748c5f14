/**
 * Page of the latest blocks and transactions, rendered by the node for browsers without JavaScript. The explorer
 * redirects these browsers to it.
 */
import { create, type DescMethodUnary, type MessageInitShape, type DescMessage } from "@bufbuild/protobuf";
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { type BlockSummary, ChainService, type TransactionSummary } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { Chain } from "../../chain/chain.js";
import { type Html, html } from "../../rpc/describe/html.js";
import { createPage } from "../../rpc/http/html-pages.js";
import type { Pages } from "../../rpc/http/pages.js";
import type { RpcResponse, ServedService } from "../../rpc/service.js";

/** Maximum number of blocks, and of transactions. */
const maxRows = 25;

export interface LatestPageDeps {
  readonly services: readonly ServedService[];
  readonly chain: Pick<Chain, "head">;
}

/** Creates the page, which is rendered once for each block. */
export function createLatestPage({ services, chain }: LatestPageDeps): Pages {
  const page = createPage({
    html: "latest.html",
    styles: ["cards.css"],
    scripts: ["shell.js"],
    async body() {
      if (chain.head() === undefined) {
        return html`<p>The node has no block yet. Reload this page in a few seconds.</p>`.text;
      }
      const [{ blocks }, { transactions }] = await Promise.all([
        callAnonymously(services, ChainService.method.listRecentBlocks, { pageSize: maxRows }),
        callAnonymously(services, ChainService.method.listTransactions, { pageSize: maxRows }),
      ]);
      return renderLatest(blocks as readonly BlockSummary[], transactions as readonly TransactionSummary[]);
    },
  });
  return { "/latest": { ...page, revision: () => Number(chain.head()?.number ?? -1) } };
}

/** Calls an rpc of the node as a client without identity. */
function callAnonymously<I extends DescMessage, O extends DescMessage>(
  services: readonly ServedService[],
  desc: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
): RpcResponse<O> {
  const method = services.flatMap(({ methods }) => methods).find((served) => served.desc === desc)!;
  const caller = { address: "127.0.0.1", identity: undefined };
  const call = { caller, signal: AbortSignal.timeout(10_000) };
  return method.invoke(create(desc.input, request), call) as RpcResponse<O>;
}

function renderLatest(blocks: readonly BlockSummary[], transactions: readonly TransactionSummary[]): string {
  return html`<h2>Blocks</h2>
    ${renderTable(
      ["Number", "Time", "Transactions", "Hash"],
      blocks.map(({ number, timestampMs, transactionCount, hash }) => [
        html`<a href="chain/blocks/${String(number)}">${String(number)}</a>`,
        timeOf(timestampMs),
        transactionCount ?? "not retained",
        digits(hash),
      ]),
    )}
    <h2>Transactions</h2>
    ${renderTable(
      ["Block", "Time", "Operation", "Hash"],
      transactions.map(({ blockNumber, timestampMs, body, hash }) => [
        html`<a href="chain/blocks/${String(blockNumber)}">${String(blockNumber)}</a>`,
        timeOf(timestampMs),
        html`<span class="${body === undefined ? "tag private" : "tag"}">${operationOf(body)}</span>`,
        html`<a href="chain/transactions/${hash}">${digits(hash)}</a>`,
      ]),
    )}`.text;
}

/** Renders a table as the explorer does: a narrow window shows each row as a card, with the names of the columns. */
function renderTable(columns: readonly string[], rows: readonly (readonly (string | number | Html)[])[]): Html {
  if (rows.length === 0) {
    return html`<p>There is none yet.</p>`;
  }
  return html`<div class="frame">
    <table role="table">
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (cells) =>
            html`<tr role="row">
              ${cells.map((cell, i) => html`<td role="cell" data-name="${columns[i]!}">${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Returns a hash, of which a narrow window shows the first and last digits. */
function digits(hash: string): Html {
  return html`<code class="digits" data-short="${hash.slice(0, 10)}…${hash.slice(-4)}">${hash}</code>`;
}

/** Returns the time in UTC, to the second. */
function timeOf(timestampMs: bigint): Html {
  const time = new Date(Number(timestampMs)).toISOString();
  return html`<time datetime="${time}">${time.replace("T", " ").replace(/\..*/, " UTC")}</time>`;
}

/** Returns the words of an operation's name: "create program" for `createProgram`. */
function operationOf(body: TransactionBody | undefined): string {
  const name = body?.operation.value?.operation.case ?? "private";
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
