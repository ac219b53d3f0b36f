import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ChannelClient, PlatformError } from '@svc/contract';
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
  ReadLogs,
  ReadNetworkLog,
  RefusedConnections,
  ReportedChange,
  SandboxReport,
  SandboxUsageReport,
  SpareProcess,
} from '@svc/contract/orchestrator';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { EVENT_TYPES, type EngineClient, type EngineEvent, type SandboxView } from '@svc/engine/client';
import { toProgress } from './fetch-progress.ts';
import { lifecycleOf } from './lifecycle-of.ts';
import { notRunning } from './not-running.ts';
import { RecentAnswers } from './recent-answers.ts';
import type { Orchestrator } from './orchestrator.ts';

/** The engine notices that a sandbox died within a moment, and releases what it had. */
const END_WAIT_MS = 5000;
const END_CHECK_MS = 25;

/** The engine of this host, behind its unix socket. */
export class LocalOrchestrator implements Orchestrator {
  readonly #engine: EngineClient;
  /** What the engine said that it can do. */
  readonly #able = new RecentAnswers();
  #listeners = 0;

  constructor(engine: EngineClient) {
    this.#engine = engine;
  }

  /** A create checks the same again, so a cached answer that is outdated fails the create. */
  async check(request: CheckSandbox, signal: AbortSignal): Promise<void> {
    const { mounts, patches } = request.spec;
    // What these name on the host can be gone the next moment.
    const isOfHost = (mounts ?? []).length > 0 || (patches ?? []).length > 0;
    if (!isOfHost && this.#able.has(request)) return;
    await this.#engine.checkSandbox(request, signal);
    // Without the stream of changes a replaced engine would not be noticed.
    if (!isOfHost && this.#listeners > 0) this.#able.note(request);
  }

  async place(): Promise<null> {
    return await Promise.resolve(null);
  }

  async create(
    request: NewOrchestratorSandbox,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<SandboxReport> {
    const view = await this.#engine.createSandbox(
      request,
      (progress) => onProgress(toProgress(progress, request.start === true)),
      signal,
    );
    return toReport(view);
  }

  async start(id: string, signal: AbortSignal): Promise<SandboxReport> {
    return toReport(await this.#engine.startSandbox(id, signal));
  }

  async stop(id: string, options: { readonly graceMs: number }, signal: AbortSignal): Promise<SandboxReport> {
    return toReport(await this.#engine.stopSandbox(id, options, signal));
  }

  async remove(id: string, signal: AbortSignal): Promise<Pick<SandboxReport, 'sequence'>> {
    return await this.#engine.removeSandbox(id, signal);
  }

  async list(signal: AbortSignal): Promise<readonly SandboxReport[]> {
    return (await this.#engine.listSandboxes(signal)).map(toReport);
  }

  async get(id: string, signal: AbortSignal): Promise<SandboxReport | undefined> {
    try {
      return toReport(await this.#engine.getSandbox(id, signal));
    } catch (error) {
      if (PlatformError.is(error, 'sandbox_not_found')) return undefined;
      throw error;
    }
  }

  async metrics(signal: AbortSignal): Promise<readonly SandboxUsageReport[]> {
    return await this.#engine.metrics(signal);
  }

  async openChannel(id: string, signal: AbortSignal): Promise<ChannelClient> {
    const stream = await this.openStream(id, signal);
    return await ChannelClient.connect(socketTransport(stream), { signal });
  }

  /**
   * A sandbox whose run just ends is seen to run, or to stop, for a moment longer; then it can be said how it ended. A caller that
   * gives up before gets the last observation, not an error.
   */
  async openStream(id: string, signal: AbortSignal): Promise<Duplex> {
    const deadline = performance.now() + END_WAIT_MS;
    let refusal: unknown;
    try {
      for (;;) {
        try {
          return await this.#engine.openChannel(id, signal);
        } catch (error) {
          if (!PlatformError.is(error, 'sandbox_not_running') && !PlatformError.is(error, 'unavailable'))
            throw error;
          refusal = error;
        }
        const report = await this.get(id, signal);
        if (report !== undefined && report.end !== null) throw notRunning(report, refusal);
        // Removed between the two questions, as ephemeral ones are when they end: the engine is asked once more and says so.
        const mayEnd = report === undefined || report.state === 'running' || report.state === 'stopping';
        if (!mayEnd || performance.now() > deadline) throw refusal;
        await delay(END_CHECK_MS, undefined, { signal });
      }
    } catch (error) {
      throw signal.aborted && !PlatformError.is(error) ? (refusal ?? error) : error;
    }
  }

  async expectProcess(id: string, process: SpareProcess, signal: AbortSignal): Promise<void> {
    await this.#engine.expectProcess(id, process, signal);
  }

  async setNetwork(id: string, network: NetworkUpdate, signal: AbortSignal): Promise<SandboxReport> {
    return toReport(await this.#engine.setNetwork(id, network, signal));
  }

  async setLifecycle(id: string, lifecycle: LifecycleUpdate, signal: AbortSignal): Promise<SandboxReport> {
    return toReport(await this.#engine.setLifecycle(id, lifecycle, signal));
  }

  async explainNetwork(request: ExplainNetwork, signal: AbortSignal): Promise<NetworkExplanation> {
    return await this.#engine.explainNetwork(request, signal);
  }

  networkLog(id: string, options: ReadNetworkLog, signal: AbortSignal): AsyncIterable<NetworkLogLine> {
    return this.#engine.networkLog(id, options, signal);
  }

  async noteRefused(id: string, refused: RefusedConnections, signal: AbortSignal): Promise<void> {
    await this.#engine.noteRefusedConnections(id, refused, signal);
  }

  logs(id: string, options: ReadLogs, signal: AbortSignal): AsyncIterable<LogEntry> {
    return this.#engine.logs(id, options, signal);
  }

  async *changes(signal: AbortSignal): AsyncGenerator<ReportedChange | null> {
    this.#listeners += 1;
    try {
      for await (const event of this.#engine.events({ types: CHANGES }, signal)) {
        if (!CHANGES.includes(event.type)) continue;
        const { sandboxId: id, sequence } = event;
        yield id === null ? null : { id, sequence };
      }
    } finally {
      this.#listeners -= 1;
      this.#able.forget();
    }
    // The stream has no end of its own: the engine shut down.
    if (!signal.aborted) throw new PlatformError('orchestrator_unreachable', 'the engine has stopped');
  }

  async *denials(signal: AbortSignal): AsyncGenerator<NetworkDenial> {
    const events = this.#engine.events({ types: DENIALS }, signal);
    for await (const { sequence, time, type, sandboxId, reason } of events) {
      if ((type !== 'policy_denied' && type !== 'secret_violation') || sandboxId === null) continue;
      // The engine writes an object of its own making.
      const details = JSON.parse(reason ?? '{}') as NetworkDenial['details'];
      // An engine that was restarted counts anew, and not at the same time.
      yield { id: `${sandboxId} ${time} ${sequence}`, time, sandboxId, type, details };
    }
  }
}

const DENIALS: readonly EngineEvent['type'][] = ['policy_denied', 'secret_violation'];
/** After the others every sandbox is as it was. */
const CHANGES = EVENT_TYPES.filter(
  (type) => !DENIALS.includes(type) && type !== 'space_short' && type !== 'space_back',
);

function toReport(view: SandboxView): SandboxReport {
  const { id, state, isolation, resolved, spec, startedAt, endedAt, end } = view;
  return {
    id,
    state,
    isolation,
    image: view.image.reference,
    createdAt: view.createdAt,
    resolved,
    network: spec.network ?? {},
    networkCeiling: view.networkCeiling,
    lifecycle: lifecycleOf(spec),
    ending: view.ending,
    startedAt,
    endedAt,
    end: end === null ? null : { reason: end.reason, message: end.message },
    sequence: view.sequence,
  };
}
