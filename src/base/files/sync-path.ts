/** Flushes files and directories to disk with fsync. */
import { open } from "node:fs/promises";

export async function syncFile(path: string): Promise<void> {
  await sync(path, "r+");
}

/** Flushes the entries of a directory, after files in it were created, renamed or removed. */
export async function syncDirectory(path: string): Promise<void> {
  await sync(path, "r");
}

async function sync(path: string, flags: string): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
