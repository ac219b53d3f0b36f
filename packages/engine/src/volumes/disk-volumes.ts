import { rm, stat } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import { allocatedBytesOf } from '../host/allocated-bytes.ts';
import type { HostCalls } from '../host/host-calls.ts';
import type { HostSpace } from '../space/host-space.ts';
import { DiskVolumeFiles } from './disk-volume-files.ts';
import { KeyedMutex } from '@svc/contract/async';
import type { Volume, VolumeUsage } from '@svc/contract/orchestrator';
import { OpenVolume } from './open-volume.ts';
import { ToolFailed } from '../host/run-tool.ts';
import { formatImage } from './volume-image.ts';
import { VolumeRecords } from './volume-records.ts';
import type { StoredFolder } from './volume-records.ts';
import type { VolumeFiles, Volumes } from './volumes.ts';

const DEFAULTS = { unmountGraceMs: 5000, busyWaitMs: 10_000, fileServerIdleMs: 30_000 };
/** 16 TiB: what ext4 holds with our block size. */
const MAX_CAPACITY_MIB = 16 * 1024 * 1024;

export interface DiskVolumesOptions {
  /** Belongs to the volumes alone. */
  readonly folder: string;
  readonly hostCalls: HostCalls;
  /** Path of svc-init. */
  readonly initProgram: string;
  readonly logger: Logger;
  /** How long a volume stays mounted after its last use. */
  readonly unmountGraceMs?: number;
  /** How long a mount waits for one before it that is still alive. */
  readonly busyWaitMs?: number;
  /** How long the process that serves the files of a volume waits for more to do. */
  readonly fileServerIdleMs?: number;
  /** Without room on the host no volume is made or written to by callers, and mounted ones do not grow. */
  readonly space: HostSpace;
}

/** Volumes as sparse ext4 images, each mounted once for all who use it. */
export class DiskVolumes implements Volumes {
  readonly #options: Required<DiskVolumesOptions>;
  readonly #records: VolumeRecords;
  readonly #open = new Map<string, OpenVolume>();
  /** One change at a time per id, for ids that have no volume too. */
  readonly #changes = new KeyedMutex();

  constructor(options: DiskVolumesOptions) {
    this.#options = { ...DEFAULTS, ...options };
    this.#records = new VolumeRecords(options.folder);
  }

  async recover(holders: ReadonlyMap<string, readonly string[]>): Promise<void> {
    const { halfMade, damaged } = await this.#records.load();
    for (const folder of damaged) this.#options.logger.error({ folder }, 'a volume has an unreadable record');
    for (const places of halfMade) await this.#removeFolder(places);
    for (const { volume } of this.#records.list()) {
      // The next user of a volume that cannot be mounted gets the error; other volumes do not wait for it.
      await this.#require(volume.id)
        .recover(holders.get(volume.id) ?? [])
        .catch((error: unknown) =>
          this.#options.logger.error({ error, id: volume.id }, 'a volume could not be recovered'),
        );
    }
  }

  async create(id: string, capacityMib: number, signal: AbortSignal): Promise<Volume> {
    checkCapacity(capacityMib);
    return await this.#change(id, async () => {
      const existing = this.#records.get(id)?.volume;
      if (existing?.capacityMib === capacityMib) return existing;
      if (existing) {
        throw new PlatformError(
          'name_already_exists',
          `The volume exists with ${existing.capacityMib} MiB; resize it`,
        );
      }
      this.#options.space.require(0, this.#options.folder);
      return await this.#make({ id, capacityMib, createdAt: new Date().toISOString() }, signal);
    });
  }

  async resize(id: string, capacityMib: number, signal: AbortSignal): Promise<Volume> {
    checkCapacity(capacityMib);
    return await this.#change(id, async () => {
      signal.throwIfAborted();
      const open = this.#require(id);
      const { volume } = open.stored;
      if (capacityMib === volume.capacityMib) return volume;
      if (capacityMib > volume.capacityMib) await open.grow(capacityMib);
      else await open.shrink(capacityMib);
      open.stored = await this.#records.save(open.stored, { ...volume, capacityMib });
      return open.stored.volume;
    });
  }

  async get(id: string): Promise<Volume | undefined> {
    return this.#records.get(id)?.volume;
  }

  async list(): Promise<readonly Volume[]> {
    return this.#records.list().map(({ volume }) => volume);
  }

  async usage(id: string): Promise<VolumeUsage> {
    return await this.#change(id, () => this.#require(id).usage());
  }

  async storedBytes(id: string): Promise<number> {
    const stored = this.#records.get(id);
    if (stored === undefined) return 0;
    return allocatedBytesOf(await stat(stored.image).catch(() => undefined));
  }

  async remove(id: string): Promise<void> {
    await this.#change(id, async () => {
      if (this.#records.get(id) === undefined) return;
      const open = this.#require(id);
      if (open.isHeld) {
        throw new PlatformError('volume_in_use', 'The volume is used by a sandbox; stop the sandbox first');
      }
      await open.whileUnmounted(async () => {
        await this.#records.forget(open.stored);
        this.#open.delete(id);
        await this.#removeFolder(open.stored);
      });
    });
  }

  async attach(id: string, holder: string, signal: AbortSignal): Promise<string> {
    return await this.#change(id, async () => {
      signal.throwIfAborted();
      return await this.#require(id).attach(holder);
    });
  }

  async detach(id: string, holder: string): Promise<void> {
    await this.#change(id, async () => this.#open.get(id)?.detach(holder));
  }

  files(id: string): VolumeFiles {
    return new DiskVolumeFiles(async () => {
      const open = this.#require(id);
      await open.heal();
      return open.access;
    });
  }

  /** Volumes that a sandbox holds stay mounted. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((open) => open.close()));
  }

  async #make(volume: Volume, signal: AbortSignal): Promise<Volume> {
    await using undo = new AsyncDisposableStack();
    const places = await this.#records.prepare();
    undo.defer(() => this.#removeFolder(places));
    try {
      await formatImage(places.image, volume.capacityMib, signal);
    } catch (error) {
      if (error instanceof ToolFailed) throw hostFull(error);
      throw error;
    }
    await this.#records.save(places, volume);
    undo.move();
    return volume;
  }

  async #removeFolder(places: StoredFolder): Promise<void> {
    await this.#options.hostCalls.removeMountPoint(places.mountPoint, 1);
    // SAFETY: a folder of our own naming directly under ours; what was mounted in it is detached.
    await rm(places.folder, { recursive: true, force: true });
  }

  #require(id: string): OpenVolume {
    const stored = this.#records.get(id);
    if (stored === undefined) throw new PlatformError('volume_not_found', 'There is no such volume');
    let open = this.#open.get(id);
    if (open === undefined) {
      open = new OpenVolume(stored, this.#options);
      this.#open.set(id, open);
    }
    return open;
  }

  async #change<T>(id: string, task: () => Promise<T>): Promise<T> {
    return await this.#changes.run(id, task);
  }
}

function checkCapacity(capacityMib: number): void {
  if (Number.isInteger(capacityMib) && capacityMib >= 1 && capacityMib <= MAX_CAPACITY_MIB) return;
  throw new PlatformError('invalid_request', `A volume has between 1 and ${MAX_CAPACITY_MIB} MiB`);
}

function hostFull(cause: unknown): PlatformError {
  return new PlatformError(
    'insufficient_storage',
    'The host has too little disk space for a volume; free some',
    {
      cause,
    },
  );
}
