import {
  normalizeSandboxClientCreateArgs,
  resolveSandboxArchiveLimits,
  isNoopSnapshotSpec,
  SandboxSnapshotError,
  SandboxLifecycleError,
  type Manifest,
  type SandboxClient,
  type SandboxClientCreateArgs,
  type SandboxClientResumeOptions,
  type SnapshotSpec,
} from '@openai/agents-core/sandbox';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { createRunning } from './create-running.ts';
import { requireSupported } from './manifest.ts';
import { LABELS, toCreateOptions, type SvcSandboxOptions } from './options.ts';
import { SvcSandboxSession } from './session.ts';
import { deserializeState, serializeState, type SvcSessionState } from './session-state.ts';

/** A sandbox of its own for each session of an agent. */
export class SvcSandboxClient implements SandboxClient<SvcSandboxOptions, SvcSessionState> {
  readonly backendId = 'svc';
  readonly #options: SvcSandboxOptions;

  constructor(options: SvcSandboxOptions = {}) {
    this.#options = options;
  }

  /** @throws SandboxSnapshotError, SandboxUnsupportedFeatureError before a sandbox is made; then nothing is left */
  async create(
    args?: SandboxClientCreateArgs<SvcSandboxOptions> | Manifest,
    manifestOptions?: SvcSandboxOptions,
  ): Promise<SvcSandboxSession> {
    const { manifest, snapshot, archiveLimits, options } = normalizeSandboxClientCreateArgs(
      args,
      manifestOptions,
    );
    requireNoSnapshot(snapshot);
    requireSupported(manifest);
    const whole = { ...this.#options, ...options };
    const { client = Client.ofEnvironment, exposedPorts = [] } = whole;
    const limits = resolveSandboxArchiveLimits(archiveLimits);
    const environment = await manifest.resolveEnvironment();
    const sandbox = await createRunning({ ...toCreateOptions(whole), client });
    try {
      const state = { sandboxId: sandbox.id, manifest, environment };
      const session = new SvcSandboxSession(sandbox, state, exposedPorts);
      session.setArchiveLimits(limits);
      await session.prepare();
      return session;
    } catch (error) {
      await sandbox.remove();
      throw error;
    }
  }

  /** With its files, also of a sandbox that was stopped. @throws SandboxLifecycleError for one that was not made for an agent */
  async resume(
    state: SvcSessionState,
    { clientOptions, archiveLimits }: SandboxClientResumeOptions<SvcSandboxOptions> = {},
  ): Promise<SvcSandboxSession> {
    const { client = Client.ofEnvironment, exposedPorts = [] } = { ...this.#options, ...clientOptions };
    const sandbox = await this.#find(state, client);
    if (sandbox.status !== 'running') await sandbox.start();
    const session = new SvcSandboxSession(sandbox, state, exposedPorts);
    session.setArchiveLimits(archiveLimits);
    return session;
  }

  async delete(state: SvcSessionState): Promise<void> {
    try {
      await (await this.#find(state, this.#options.client ?? Client.ofEnvironment)).remove();
    } catch (error) {
      if (!SvcError.is(error, 'sandbox_not_found')) throw error;
    }
  }

  async serializeSessionState(state: SvcSessionState): Promise<Record<string, unknown>> {
    return serializeState(state);
  }

  async deserializeSessionState(state: Record<string, unknown>): Promise<SvcSessionState> {
    return await deserializeState(state);
  }

  /** A state may come from where it could have been changed: it opens no sandbox that was not made for an agent. */
  async #find({ sandboxId }: SvcSessionState, client: Client): Promise<Sandbox> {
    const sandbox = await Sandbox.connect(sandboxId, { client });
    if (sandbox.info.spec?.labels['made-by'] === LABELS['made-by']) return sandbox;
    const message = `The sandbox ${sandboxId} was not made for a session of an agent`;
    throw new SandboxLifecycleError(message, { sandboxId });
  }
}

/** The disk of the sandbox is what a session is resumed with. */
function requireNoSnapshot(spec: SnapshotSpec | undefined): void {
  if (spec === undefined || isNoopSnapshotSpec(spec)) return;
  const message = `snapshot: svc has no snapshots of the type '${spec.type}'. Keep the state of the session and resume it, or give the option snapshotId`;
  throw new SandboxSnapshotError(message, { field: 'snapshot' });
}
