/** Commands of `gatehouse zk` that read the root of the commitment tree, or a nullifier. */
import type { Command } from "commander";
import { requestOk } from "../calls/request-node.js";
import { paint, print, table } from "../terminal/output.js";
import { addNodeFlags, addVerifyFlags, type NodeFlags, type VerifyFlags } from "../usage/flags.js";
import { isVerifying } from "./verifying.js";

type ReadFlags = NodeFlags & VerifyFlags;

/** Loads the code for proved reads, which unproved reads do not need. */
export async function loadProving() {
  const [{ readProved }, { ZkService }] = await Promise.all([
    import("./proved-reads.js"),
    import("../../../gen/gatehouse/zk/v1/zk_pb.js"),
  ]);
  return { readProved, ZkService };
}

export function addZkReads(zk: Command): void {
  addVerifyFlags(
    addNodeFlags(zk.command("nullifier <HASH>").description("Show if a nullifier is spent, and in which block.")),
  ).action(async (nullifierHash: string, flags: ReadFlags) => {
    const text = await readNullifier(nullifierHash, flags);
    print(flags.json === true ? text : describeNullifier(JSON.parse(text) as NullifierBody));
  });

  addVerifyFlags(addNodeFlags(zk.command("root").description("Show the root of the commitment tree."))).action(
    async (flags: ReadFlags) => {
      const text = await readRoot(flags);
      if (flags.json === true) {
        print(text);
        return;
      }
      const { leafCount, blockNumber, rootHash } = JSON.parse(text) as RootBody;
      print(
        ...table([
          ["LEAVES", "BLOCK", "ROOT"],
          [String(leafCount), String(blockNumber), rootHash],
        ]),
      );
    },
  );
}

interface NullifierBody {
  readonly used: boolean;
  readonly blockNumber: number | null;
  readonly transactionHash: string | null;
}

interface RootBody {
  readonly rootHash: string;
  readonly leafCount: number;
  readonly blockNumber: number;
}

async function readNullifier(nullifierHash: string, flags: ReadFlags): Promise<string> {
  if (!isVerifying(flags)) {
    return await requestOk(flags.node, `/zk/nullifier/${encodeURIComponent(nullifierHash)}`);
  }
  const { readProved, ZkService } = await loadProving();
  return await readProved(flags, ZkService.method.getNullifier, { nullifierHash });
}

async function readRoot(flags: ReadFlags): Promise<string> {
  if (!isVerifying(flags)) {
    return await requestOk(flags.node, "/zk/merkle-root");
  }
  const { readProved, ZkService } = await loadProving();
  return await readProved(flags, ZkService.method.getMerkleRoot, {});
}

function describeNullifier({ used, blockNumber, transactionHash }: NullifierBody): string {
  return used ? `${paint("yellow", "spent")} in block ${blockNumber} by ${transactionHash}` : paint("green", "unspent");
}
