/** Saves a database as files of SQLite, while a node may write to it. */
import { rm, stat } from "node:fs/promises";
import { claimFile } from "../../base/files/private-files.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { syncFile } from "../../base/files/sync-path.js";
import { copyDatabase } from "./copy.js";
import { fileOf, mempoolSuffix, withDatabase } from "../open.js";
import { openSqliteForReading } from "../sqlite/sqlite.js";

/** How far it is. */
export type OnSaved = (unit: "MiB" | "rows", done: number, total: number) => void;

const lookEveryMs = 200;
const mebibyte = 1024 * 1024;

/**
 * Saves both parts, each as of one moment, that of the mempool first: a block is stored before its transactions leave the
 * mempool, so that none is in neither. A writer is not kept waiting.
 *
 * @param path of the new file of the chain; that of the mempool stands beside it.
 * @throws DatabaseError
 */
export async function backupDatabase(url: string, path: string, onSaved: OnSaved): Promise<void> {
  const file = fileOf(url);
  if (file === undefined) {
    await saveServer(url, path, onSaved);
    return;
  }
  for (const suffix of [mempoolSuffix, ""]) {
    await saveFile(`${file}${suffix}`, `${path}${suffix}`, onSaved);
  }
}

async function saveFile(from: string, to: string, onSaved: OnSaved): Promise<void> {
  const source = await openSqliteForReading(from);
  try {
    // SQLite writes into an empty file, and would make one that others may read.
    await claimFile(to);
    const [{ bytes: total } = { bytes: 0 }] = await source.read.rows<{ bytes: number }>((sql) =>
      sql.raw("SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()"),
    );
    const toMib = (bytes: number): number => Math.round(bytes / mebibyte);
    const looks = startPeriodicTask(
      async () => onSaved("MiB", toMib((await stat(to)).size), toMib(total)),
      lookEveryMs,
      () => undefined,
    );
    try {
      await source.read.run((sql) => sql.raw("VACUUM INTO ?", [to]));
    } finally {
      await looks.stop();
    }
  } finally {
    await source.close();
  }
  await syncFile(to);
}

/** A copy by rows; what it holds can be used with any server, and without one. */
async function saveServer(url: string, path: string, onSaved: OnSaved): Promise<void> {
  await withDatabase(url, (source) =>
    withDatabase(`sqlite:${path}`, (target) =>
      copyDatabase({
        ...{ source, target, sourceState: "a server" },
        onProgress: (step, done, total) => (step === "copied" ? onSaved("rows", done, total) : undefined),
        confirm: () => Promise.resolve(),
      }),
    ),
  );
  for (const suffix of [mempoolSuffix, ""]) {
    await syncFile(`${path}${suffix}`);
  }
}

/** Whatever SQLite leaves beside a file that nobody has open any more. */
export async function removeTraces(path: string): Promise<void> {
  const traces = [mempoolSuffix, ""].flatMap((part) => ["-wal", "-shm"].map((suffix) => `${path}${part}${suffix}`));
  await Promise.all([...traces, `${path}-lock`].map((trace) => rm(trace, { force: true })));
}
