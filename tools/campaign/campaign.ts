/** A campaign: load, faults in rounds, and a rest after each at which everything is compared. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Teardown } from "../../test/helpers/nodes/teardown.js";
import { compareDatabases, compareWholeChains } from "./at-the-end.js";
import type { PlannedFault, Stage } from "./faults/fault.js";
import { type Prober, startProber } from "./load/prober.js";
import { startReaders } from "./load/readers.js";
import { type Load, startLoad } from "./load/senders.js";
import { latenciesIn, type Phase, saidIn } from "./phases.js";
import { createRest, type Rest } from "./rest.js";
import type { CampaignResult, Round } from "./result.js";
import { planOneByOne, planRound } from "./schedule.js";
import type { CampaignSettings, FaultKind } from "./settings.js";
import { chooseKinds, setStage } from "./stage.js";

/** Load without a fault, before each round. */
const calmMs = 2_000;
/** What the prober has seen comes twice a second. */
const probesLateMs = 600;

/** What a campaign has going. */
interface Running {
  readonly stage: Stage;
  readonly load: Load;
  readonly prober: Prober;
  readonly rest: Rest;
}

/** Runs one. What it opens is closed by `t`. @throws Error where it cannot begin */
export async function runCampaign(t: Teardown, settings: CampaignSettings): Promise<CampaignResult> {
  const { seed, say } = settings;
  const startedMs = Date.now();
  const stage = await setStage(t, settings);
  const { network, model, client } = stage;
  const { possible, skipped } = chooseKinds(settings.kinds, stage);
  say("starting the nodes");
  const [authority, follower, joiner] = network.nodes;
  await authority!.start();
  await follower!.start();
  const prober = startProber(network.nodes.map(({ port }) => port));
  t.teardown(() => prober.stop());
  const { nodes, genesisHash } = network;
  const load = startLoad({ seed, rate: settings.rate, network: genesisHash, nodes, model, client });
  const stopReaders = startReaders(seed, { nodes, model, client });
  await sleep(calmMs);
  await joiner!.start();
  const rest = createRest(stage, load, settings.restMs);
  const { rounds, calm, endedEarly } = await runRounds({ stage, load, prober, rest }, possible, settings);
  say("comparing everything");
  await Promise.all([load.stop(), stopReaders()]);
  if (endedEarly === undefined) {
    await compareWholeChains(stage);
  }
  await stopAll(stage);
  if (endedEarly === undefined) {
    await compareDatabases(stage, load.senders);
  }
  await prober.stop();
  return {
    ...{ seed, engine: settings.engine, minutes: settings.minutes, rounds, skipped },
    seconds: (Date.now() - startedMs) / 1000,
    findings: model.findings,
    counts: { ...model.counts, blocks: model.height },
    calm: latenciesIn(prober.probes, calm, () => true),
    ...(endedEarly !== undefined && { endedEarly }),
  };
}

async function runRounds(running: Running, kinds: readonly FaultKind[], settings: CampaignSettings) {
  const { seed, say, isShort = false, rounds: mostRounds = Infinity } = settings;
  const { stage, load, rest } = running;
  const rounds: Round[] = [];
  const calm: Phase[] = [];
  const endMs = performance.now() + settings.minutes * 60_000;
  let endedEarly = (await rest()).whyNot;
  for (let number = 1; endedEarly === undefined && number <= mostRounds && performance.now() < endMs; number++) {
    const planned = (isShort ? planOneByOne : planRound)(seed, number, kinds);
    if (planned.length === 0) {
      break;
    }
    stage.model.setRound(number);
    load.resume();
    const calmFromMs = Date.now();
    await sleep(calmMs);
    calm.push({ fromMs: calmFromMs, toMs: Date.now() });
    const names = planned.map(({ target, title }) => `${stage.network.nodes[target]!.name}: ${title}`);
    const { findings } = stage.model;
    const found = findings.length;
    say(`round ${number}: ${names.join("; ")}`);
    const made = await makeRound(running, number, planned);
    rounds.push(made.round);
    endedEarly = made.endedEarly;
    findings.slice(found).forEach(({ column, sentence }) => say(`  ${column}: ${sentence}`));
  }
  return { rounds, calm, endedEarly };
}

async function makeRound({ stage, prober, rest }: Running, number: number, planned: readonly PlannedFault[]) {
  const { nodes } = stage.network;
  const fromMs = Date.now();
  await Promise.all(planned.map((fault) => fault.run(stage)));
  const during: Phase = { fromMs, toMs: Date.now() };
  const { restMs, whyNot } = await rest();
  await sleep(probesLateMs);
  const targets = planned.map(({ target }) => target);
  const round: Round = {
    ...{ number, ...during, restMs },
    faults: planned.map(({ kind, target, title }) => ({ kind, title, node: nodes[target]!.name })),
    said: Object.fromEntries(targets.map((target) => [nodes[target]!.name, saidIn(prober.probes, during, target)])),
    others: latenciesIn(prober.probes, [during], ({ node }) => !targets.includes(node)),
  };
  return { round, endedEarly: whyNot };
}

async function stopAll({ network, model }: Stage): Promise<void> {
  for (const node of network.nodes.filter(({ isRunning }) => isRunning)) {
    const code = await node.end("SIGTERM");
    if (code !== 0) {
      model.find("crashed", `${node.name} ended with ${code ?? "a signal"} when it was asked to stop at the end.`);
    }
  }
}
