import type { Duplex } from 'node:stream';
import { PlatformError, type ChannelClient } from '@svc/contract';
import type {
  CheckSandbox,
  ExplainNetwork,
  FetchProgress,
  LifecycleUpdate,
  LogEntry,
  NetworkDenial,
  NetworkExplanation,
  NetworkLogLine,
  NetworkUpdate,
  NewOrchestratorSandbox,
  NodeChange,
  ReadLogs,
  ReadNetworkLog,
  RefusedConnections,
  ReportedChange,
  SandboxReport,
  SandboxUsageReport,
  SpareProcess,
} from '@svc/contract/orchestrator';
import { followFleet } from './fleet-changes.ts';
import { mergeStreams } from './merge-streams.ts';
import { chooseNode, type Placement } from './fleet-placement.ts';
import type { NodeFinder } from './node-finder.ts';
import type { Orchestrator } from './orchestrator.ts';

/** Sandboxes on several nodes. A sandbox stays on its node, and the calls about it go there. */
export class FleetOrchestrator implements Orchestrator {
  readonly #fleet: Placement;
  readonly #sandboxes: NodeFinder;

  constructor(fleet: Placement, sandboxes: NodeFinder) {
    this.#fleet = fleet;
    this.#sandboxes = sandboxes;
  }

  async place(request: NewOrchestratorSandbox, signal: AbortSignal): Promise<string> {
    return await chooseNode(this.#fleet, request, signal);
  }

  /** A create checks it again, on its node; here one node that could make it is enough. */
  async check(request: CheckSandbox, signal: AbortSignal): Promise<void> {
    const refusals: unknown[] = [];
    const { answers } = await this.#fleet.members.ask(async ({ orchestrator }, deadline) => {
      try {
        await orchestrator.check(request, deadline);
        return true;
      } catch (error) {
        if (!PlatformError.is(error) || error.code === 'orchestrator_unreachable') throw error;
        refusals.push(error);
        return false;
      }
    }, signal);
    if (!answers.some(({ answer }) => answer)) throw refusals[0];
  }

  async create(
    request: NewOrchestratorSandbox,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<SandboxReport> {
    const { id, node: wanted, ...rest } = request;
    if (wanted === undefined) await this.#requireNew(id, signal);
    const node = wanted ?? (await this.place(request, signal));
    const { orchestrator } = this.#fleet.members.portsOf(node);
    try {
      const report = await orchestrator.create({ id, ...rest }, onProgress, signal);
      this.#sandboxes.note(id, node);
      return { ...report, node };
    } catch (error) {
      if (PlatformError.is(error, 'insufficient_capacity')) this.#fleet.full.note(node);
      throw error;
    }
  }

  async start(id: string, signal: AbortSignal): Promise<SandboxReport> {
    return await this.#report(id, async (orchestrator) => await orchestrator.start(id, signal), signal);
  }

  async stop(id: string, options: { readonly graceMs: number }, signal: AbortSignal): Promise<SandboxReport> {
    return await this.#report(
      id,
      async (orchestrator) => await orchestrator.stop(id, options, signal),
      signal,
    );
  }

  async remove(id: string, signal: AbortSignal): Promise<Pick<SandboxReport, 'sequence'>> {
    const node = await this.#sandboxes.find(id, signal);
    if (node === undefined) return {};
    const removed = await this.#fleet.members.portsOf(node).orchestrator.remove(id, signal);
    this.#sandboxes.forget(id);
    return removed;
  }

  async list(signal: AbortSignal): Promise<readonly SandboxReport[]> {
    const { answers } = await this.#fleet.members.ask(
      async ({ orchestrator }, deadline) => await orchestrator.list(deadline),
      signal,
    );
    return answers.flatMap(({ node, answer }) =>
      answer.map((report) => {
        this.#sandboxes.note(report.id, node);
        return { ...report, node };
      }),
    );
  }

  async get(id: string, signal: AbortSignal): Promise<SandboxReport | undefined> {
    const node = await this.#sandboxes.find(id, signal);
    if (node === undefined) return undefined;
    const report = await this.#fleet.members.portsOf(node).orchestrator.get(id, signal);
    if (report !== undefined) return { ...report, node };
    // Another server may have made it elsewhere, after this node had no room for it.
    this.#sandboxes.forget(id);
    const now = await this.#sandboxes.find(id, signal);
    if (now === undefined || now === node) return undefined;
    const found = await this.#fleet.members.portsOf(now).orchestrator.get(id, signal);
    return found && { ...found, node: now };
  }

  async setNetwork(id: string, network: NetworkUpdate, signal: AbortSignal): Promise<SandboxReport> {
    return await this.#report(
      id,
      async (orchestrator) => await orchestrator.setNetwork(id, network, signal),
      signal,
    );
  }

  async setLifecycle(id: string, lifecycle: LifecycleUpdate, signal: AbortSignal): Promise<SandboxReport> {
    return await this.#report(
      id,
      async (orchestrator) => await orchestrator.setLifecycle(id, lifecycle, signal),
      signal,
    );
  }

  /** A sandbox that is not made yet is judged by the first node that answers. */
  async explainNetwork(request: ExplainNetwork, signal: AbortSignal): Promise<NetworkExplanation> {
    const node = await this.#sandboxes.find(request.id, signal);
    if (node !== undefined)
      return await this.#fleet.members.portsOf(node).orchestrator.explainNetwork(request, signal);
    const { answers } = await this.#fleet.members.ask(
      async ({ orchestrator }, deadline) => await orchestrator.explainNetwork(request, deadline),
      signal,
    );
    const [first] = answers;
    if (first === undefined) throw new PlatformError('orchestrator_unreachable', 'the fleet has no node');
    return first.answer;
  }

  async *networkLog(
    id: string,
    options: ReadNetworkLog,
    signal: AbortSignal,
  ): AsyncGenerator<NetworkLogLine> {
    yield* (await this.#at(id, signal)).networkLog(id, options, signal);
  }

  async noteRefused(id: string, refused: RefusedConnections, signal: AbortSignal): Promise<void> {
    await (await this.#at(id, signal)).noteRefused(id, refused, signal);
  }

  async metrics(signal: AbortSignal): Promise<readonly SandboxUsageReport[]> {
    const { answers } = await this.#fleet.members.ask(
      async ({ orchestrator }, deadline) => await orchestrator.metrics(deadline),
      signal,
    );
    return answers.flatMap(({ node, answer }) => answer.map((usage) => ({ ...usage, node })));
  }

  async expectProcess(id: string, process: SpareProcess, signal: AbortSignal): Promise<void> {
    await (await this.#at(id, signal)).expectProcess(id, process, signal);
  }

  async openChannel(id: string, signal: AbortSignal): Promise<ChannelClient> {
    return await (await this.#at(id, signal)).openChannel(id, signal);
  }

  async openStream(id: string, signal: AbortSignal): Promise<Duplex> {
    return await (await this.#at(id, signal)).openStream(id, signal);
  }

  async *logs(id: string, options: ReadLogs, signal: AbortSignal): AsyncGenerator<LogEntry> {
    yield* (await this.#at(id, signal)).logs(id, options, signal);
  }

  changes(signal: AbortSignal): AsyncIterable<ReportedChange | NodeChange | null> {
    return followFleet(this.#fleet.members, signal);
  }

  denials(signal: AbortSignal): AsyncIterable<NetworkDenial> {
    const streams = this.#fleet.members.all.map(
      ({ ports }) =>
        (over: AbortSignal) =>
          ports.orchestrator.denials(over),
    );
    return mergeStreams(streams, signal);
  }

  async #requireNew(id: string, signal: AbortSignal): Promise<void> {
    const node = await this.#sandboxes.find(id, signal);
    if (node === undefined) return;
    const report = await this.#fleet.members.portsOf(node).orchestrator.get(id, signal);
    if (report !== undefined) throw new PlatformError('name_already_exists', `sandbox ${id} is on ${node}`);
    this.#sandboxes.forget(id);
  }

  async #at(id: string, signal: AbortSignal): Promise<Orchestrator> {
    return await this.#sandboxes.call(
      id,
      'sandbox_not_found',
      async ({ orchestrator }) => await Promise.resolve(orchestrator),
      signal,
    );
  }

  async #report(
    id: string,
    question: (orchestrator: Orchestrator) => Promise<SandboxReport>,
    signal: AbortSignal,
  ): Promise<SandboxReport> {
    return await this.#sandboxes.call(
      id,
      'sandbox_not_found',
      async ({ orchestrator }, node) => ({ ...(await question(orchestrator)), node }),
      signal,
    );
  }
}
