import { PlatformError } from '@svc/contract/errors';
import type { VolumeUsage } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { HostCalls } from '../host/host-calls.ts';
import type { HostSpace } from '../space/host-space.ts';
import type { VolumeAccess } from './disk-volume-files.ts';
import { FileServer } from './file-server.ts';
import { PendingWrites } from './pending-writes.ts';
import { ToolFailed } from '../host/run-tool.ts';
import { growMounted, growUnmounted, readUsedBytes, shrinkUnmounted, usageOf } from './volume-image.ts';
import { VolumeMount } from './volume-mount.ts';
import type { StoredVolume } from './volume-records.ts';
import { VolumeSync } from './volume-sync.ts';

export interface OpenVolumeOptions {
  readonly hostCalls: HostCalls;
  readonly initProgram: string;
  readonly logger: Logger;
  readonly unmountGraceMs: number;
  readonly busyWaitMs: number;
  readonly fileServerIdleMs: number;
  readonly space: HostSpace;
}

/** A caller can start the file server between its end and the lock of the mount, but hardly this often. */
const MAX_ATTEMPTS = 10;

/** A volume with its mount, its holders and its file server. Calls never overlap. */
export class OpenVolume {
  stored: StoredVolume;
  readonly access: VolumeAccess;
  readonly #mount: VolumeMount;
  readonly #holders = new Set<string>();

  constructor(stored: StoredVolume, options: OpenVolumeOptions) {
    const { hostCalls, logger, space, busyWaitMs, unmountGraceMs: graceMs, initProgram: program } = options;
    this.stored = stored;
    this.#mount = new VolumeMount(stored, { hostCalls, logger, space, graceMs, busyWaitMs });
    const pending = new PendingWrites(stored.notes);
    const server = new FileServer({
      program,
      mount: this.#mount,
      idleMs: options.fileServerIdleMs,
      prepare: (files) => pending.cleanUp(files),
    });
    this.access = { server, pending, sync: new VolumeSync(stored.mountPoint), space };
  }

  get isHeld(): boolean {
    return this.#holders.size > 0;
  }

  async attach(holder: string): Promise<string> {
    await this.heal();
    // Also for a known holder: the mount may have been removed from outside.
    const root = await this.#mount.acquire();
    if (this.#holders.has(holder)) this.#mount.release();
    else this.#holders.add(holder);
    return root;
  }

  /** Unmounts a volume with file system errors, so that it is repaired before its next use; not while a sandbox uses it. */
  async heal(): Promise<void> {
    if (this.isHeld || !this.#mount.hasErrors) return;
    await this.whileUnmounted(async () => undefined).catch((error: unknown) => {
      if (!PlatformError.is(error, 'volume_in_use')) throw error;
    });
  }

  detach(holder: string): void {
    if (this.#holders.delete(holder)) this.#mount.release();
  }

  /** Mounts the volume if it has holders and unmounts it otherwise. Idempotent. */
  async recover(holders: readonly string[]): Promise<void> {
    for (const holder of this.#holders) if (!holders.includes(holder)) this.detach(holder);
    for (const holder of holders) await this.attach(holder);
    await this.#mount.unmountUnused();
  }

  async usage(): Promise<VolumeUsage> {
    const { capacityMib } = this.stored.volume;
    const usedBytes = await this.#mount.usedBytes();
    if (usedBytes !== undefined) return usageOf(usedBytes, capacityMib);
    return usageOf(await readUsedBytes(this.stored.image), capacityMib);
  }

  /** Grows a mounted volume in place if the host allows it; otherwise the volume must have no holders. */
  async grow(capacityMib: number): Promise<void> {
    const device = await this.#mount.device();
    if (device !== undefined) {
      try {
        await growMounted(this.stored.image, device, capacityMib);
        return;
      } catch (error) {
        if (!(error instanceof ToolFailed)) throw error;
        if (this.isHeld) throw inUse('This host lets a volume grow only while no sandbox uses it', error);
      }
    }
    await this.whileUnmounted(() => growUnmounted(this.stored.image, capacityMib));
  }

  async shrink(capacityMib: number): Promise<void> {
    if (this.isHeld) throw inUse('A volume can be made smaller only while no sandbox uses it', undefined);
    const { usedBytes } = await this.usage();
    if (usedBytes > capacityMib * 1024 * 1024) throw tooSmall(usedBytes, undefined);
    try {
      await this.whileUnmounted(() => shrinkUnmounted(this.stored.image, capacityMib));
    } catch (error) {
      if (error instanceof ToolFailed) throw tooSmall(usedBytes, error);
      throw error;
    }
  }

  /** Runs a task while the volume is not in use. New file operations of callers wait. */
  async whileUnmounted(task: () => Promise<void>): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      await this.access.server.stop();
      if (await this.#mount.whileUnmounted(task)) return;
      if (this.isHeld) break;
    }
    throw inUse('The volume is in use; stop the sandboxes that use it, or try again', undefined);
  }

  /** Ends the file server; unmounts unless a sandbox holds the volume. */
  async close(): Promise<void> {
    await this.access.server.stop();
    await this.#mount.unmountUnused();
  }
}

function inUse(message: string, cause: unknown): PlatformError {
  return new PlatformError('volume_in_use', message, { cause });
}

function tooSmall(usedBytes: number, cause: unknown): PlatformError {
  return new PlatformError(
    'invalid_request',
    'The files of the volume need more than that; remove some first',
    {
      details: { usedBytes },
      cause,
    },
  );
}
