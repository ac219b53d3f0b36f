import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import {
  MastraSandbox,
  SandboxAbortError,
  SandboxError,
  SandboxNotReadyError,
  validateSandboxFileMode,
  type ProviderStatus,
  type SandboxCloneOptions,
  type SandboxFileInput,
  type SandboxInfo,
  type SandboxNetworking,
  type SandboxStartOptions,
  type WriteFilesOptions,
} from '@mastra/core/workspace';
import { Client, Sandbox, SvcError, type CallOptions } from '@svc/sdk';
import { findSnapshot } from './checkpoints.ts';
import { createRunning } from './create-running.ts';
import { cloned, nameOf, toCreateOptions, type SvcSandboxOptions } from './options.ts';
import { SvcProcesses } from './processes.ts';

/** A sandbox of svc for a workspace: made, or found by its id, when it is first used. */
export class SvcSandbox extends MastraSandbox<Sandbox> {
  readonly id: string;
  override readonly name = 'svc';
  readonly provider = 'svc';
  status: ProviderStatus = 'pending';
  override readonly supportsCheckpoints = true;
  override readonly networking: SandboxNetworking;
  readonly #options: SvcSandboxOptions;
  readonly #client: Client;
  readonly #svcName: string;
  #sandbox: Sandbox | undefined;

  constructor(options: SvcSandboxOptions = {}) {
    super({ ...options, name: 'svc', processes: new SvcProcesses() });
    this.id = options.id ?? randomUUID();
    this.#svcName = nameOf(this.id);
    this.#options = options;
    this.#client = options.client ?? Client.ofEnvironment;
    this.networking = { getPortUrl: async (port) => await this.#urlOf(port) };
  }

  /** What runs, with all that `@svc/sdk` can do with it. @throws SandboxNotReadyError before it was started */
  get svc(): Sandbox {
    if (this.#sandbox === undefined) throw new SandboxNotReadyError(this.id);
    return this.#sandbox;
  }

  override async stop(): Promise<void> {
    await this.#sandbox?.stop().catch(unlessOver);
    // Mastra notes it only when its workspace stops it.
    this.status = 'stopped';
  }

  override async destroy(): Promise<void> {
    await this.#sandbox?.remove().catch(unlessOver);
    this.status = 'destroyed';
  }

  /** Replaces the checkpoint of this name. @throws SandboxError without `checkpointName` */
  override async snapshot(): Promise<void> {
    const { checkpointName } = this.#options;
    if (checkpointName === undefined)
      throw new SandboxError('A snapshot needs the option checkpointName, its name', 'INVALID_ARGUMENT');
    await this.ensureRunning();
    await this.svc.snapshot(checkpointName, { force: true });
  }

  clone(changes: SandboxCloneOptions = {}): SvcSandbox {
    return new SvcSandbox(cloned({ ...this.#options, client: this.#client }, changes));
  }

  override async writeFiles(
    files: SandboxFileInput[],
    { abortSignal }: WriteFilesOptions = {},
  ): Promise<void> {
    for (const { mode } of files) if (mode !== undefined) validateSandboxFileMode(mode);
    if (abortSignal?.aborted === true) throw new SandboxAbortError('writeFiles', abortSignal.reason);
    await this.ensureRunning();
    const call = abortSignal === undefined ? {} : { signal: abortSignal };
    try {
      for (const file of files) await this.#write(file, call);
    } catch (error) {
      if (SvcError.is(error, 'aborted')) throw new SandboxAbortError('writeFiles', abortSignal?.reason);
      throw error;
    }
  }

  override async getInfo(): Promise<SandboxInfo> {
    const { id, provider, status } = this;
    if (this.#sandbox === undefined)
      return { id, name: this.#svcName, provider, status, createdAt: new Date() };
    const { name, created_at, ends_at, spec, ...record } = await this.#sandbox.refresh();
    const resources = spec?.resources;
    return {
      id,
      name,
      provider,
      status,
      createdAt: new Date(created_at),
      ...(ends_at === null ? {} : { timeoutAt: new Date(ends_at) }),
      ...(resources === undefined
        ? {}
        : { resources: { cpuCores: resources.vcpus, memoryMB: resources.memory_mib } }),
      metadata: { sandboxId: record.id, status: record.status, labels: spec?.labels },
    };
  }

  override getInstructions(): string {
    const folder = this.workingDirectory;
    const place = folder === undefined ? '' : ` Commands begin in ${folder}.`;
    return `A Linux sandbox of svc. Commands are run by /bin/sh.${place} Its files are kept when it stops.`;
  }

  protected override async find({ abortSignal }: SandboxStartOptions = {}): Promise<Sandbox | undefined> {
    const { sandboxId } = this.#options;
    try {
      return await Sandbox.connect(sandboxId ?? this.#svcName, {
        client: this.#client,
        ...callOf(abortSignal),
      });
    } catch (error) {
      // One that was named is not replaced by another.
      if (sandboxId !== undefined || !SvcError.is(error, 'sandbox_not_found')) throw error;
      return undefined;
    }
  }

  protected override async connect(
    sandbox: Sandbox,
    { abortSignal }: SandboxStartOptions = {},
  ): Promise<void> {
    if (sandbox.status !== 'running') await sandbox.start(callOf(abortSignal));
    this.#sandbox = sandbox;
  }

  protected override async create({ abortSignal }: SandboxStartOptions = {}): Promise<void> {
    const { checkpointName, seedCheckpointName } = this.#options;
    const snapshotId = await findSnapshot(this.#client, [checkpointName, seedCheckpointName]);
    const options = toCreateOptions(this.#options, this.#svcName, snapshotId);
    this.#sandbox = await createRunning({ ...options, client: this.#client, ...callOf(abortSignal) });
  }

  async #urlOf(port: number): Promise<string | null> {
    return this.status === 'running' ? await this.svc.url(port) : null;
  }

  async #write({ path, content, mode }: SandboxFileInput, call: CallOptions): Promise<void> {
    const whole = posix.resolve(this.workingDirectory ?? '/', path);
    await this.svc.files.mkdir(posix.dirname(whole), call);
    await this.svc.files.write(whole, content, call);
    if (mode !== undefined) await this.svc.files.chmod(whole, mode, call);
  }
}

function callOf(signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? {} : { signal };
}

/** Another program has stopped or removed it already. */
function unlessOver(error: unknown): void {
  const isOver = SvcError.is(error, 'sandbox_not_found') || SvcError.is(error, 'invalid_state_transition');
  if (!isOver) throw error;
}
