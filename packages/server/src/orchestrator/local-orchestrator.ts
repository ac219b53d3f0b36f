import { ChannelClient, PlatformError, type SandboxSpec } from '@svc/contract';
import {
  duplexTransport,
  type Capabilities,
  type EngineClient,
  type ImageProgress,
  type SandboxView,
} from '@svc/engine/client';
import type {
  FetchProgress,
  Orchestrator,
  OrchestratorDescription,
  SandboxReport,
  SandboxUsageReport,
} from './orchestrator.ts';

/** The engine of this host, behind its unix socket. */
export class LocalOrchestrator implements Orchestrator {
  readonly #engine: EngineClient;

  constructor(engine: EngineClient) {
    this.#engine = engine;
  }

  async describe(signal: AbortSignal): Promise<OrchestratorDescription> {
    return describeCapabilities(await this.#engine.capabilities(signal));
  }

  async create(
    request: { readonly id: string; readonly spec: SandboxSpec },
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal,
  ): Promise<SandboxReport> {
    const view = await this.#engine.createSandbox(
      request,
      (progress) => onProgress(toProgress(progress)),
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

  async remove(id: string, signal: AbortSignal): Promise<void> {
    await this.#engine.removeSandbox(id, signal);
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
    const stream = await this.#engine.openChannel(id, signal);
    return await ChannelClient.connect(duplexTransport(stream), { signal });
  }

  async *changes(signal: AbortSignal): AsyncGenerator<string | null> {
    for await (const event of this.#engine.events({}, signal)) {
      yield event.type === 'engine_started' ? null : event.sandboxId;
    }
    // The stream has no end of its own: the engine shut down.
    if (!signal.aborted) throw new PlatformError('orchestrator_unreachable', 'the engine has stopped');
  }
}

function describeCapabilities(capabilities: Capabilities): OrchestratorDescription {
  const { version, defaultIsolation, runtimes } = capabilities;
  const reasons = runtimes.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  const problem = defaultIsolation === null ? `no isolation runtime is usable (${reasons})` : null;
  return { version, isolation: defaultIsolation, problem };
}

function toReport({ id, state, startedAt, endedAt, end }: SandboxView): SandboxReport {
  return {
    id,
    state,
    startedAt,
    endedAt,
    end: end === null ? null : { reason: end.reason, message: end.message },
  };
}

function toProgress(progress: ImageProgress): FetchProgress {
  const unknown = { doneBytes: null, totalBytes: null };
  switch (progress.step) {
    case 'resolving':
      return { message: `resolving image ${progress.reference}`, ...unknown };
    case 'downloading': {
      const { doneBytes, totalBytes } = progress;
      return { message: 'downloading image', doneBytes, totalBytes };
    }
    case 'unpacking':
      return { message: 'unpacking image', ...unknown };
    case 'building':
      return { message: progress.message, ...unknown };
    case 'done':
      return { message: 'image is ready', ...unknown };
    default:
      return progress satisfies never;
  }
}
