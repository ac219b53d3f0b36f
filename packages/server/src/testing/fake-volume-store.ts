import { PlatformError } from '@svc/contract';
import type { Volume, VolumeEntry, VolumeUsage } from '@svc/contract/orchestrator';
import { checkEntryPath, checkVolumePath } from '@svc/contract/rest';
import { FakeVolumeFiles } from './fake-volume-files.ts';
import type { VolumeStore } from '../orchestrator/volume-store.ts';

const MIB = 1024 * 1024;

interface FakeVolume {
  readonly files: FakeVolumeFiles;
  volume: Volume;
  isHeld: boolean;
}

/** Implements the port in memory. */
export class FakeVolumeStore implements VolumeStore {
  readonly #volumes = new Map<string, FakeVolume>();
  #isAway = false;
  /** Acts as a host without room for another volume. */
  isHostFull = false;

  /** Acts as a killed engine: calls fail; volumes stay. */
  goAway(): void {
    this.#isAway = true;
  }

  comeBack(): void {
    this.#isAway = false;
  }

  /** Acts as a sandbox that has it mounted. */
  hold(id: string, isHeld: boolean): void {
    this.#find(id).isHeld = isHeld;
  }

  async createVolume(id: string, capacityMib: number): Promise<Volume> {
    await this.#answer();
    const known = this.#volumes.get(id)?.volume;
    if (known?.capacityMib === capacityMib) return known;
    if (known !== undefined) throw new PlatformError('name_already_exists', `volume ${id} exists; resize it`);
    if (this.isHostFull)
      throw new PlatformError('insufficient_storage', 'The host has too little disk space for a volume');
    const volume: Volume = { id, capacityMib, createdAt: new Date().toISOString() };
    this.#volumes.set(id, { volume, isHeld: false, files: new FakeVolumeFiles(capacityMib * MIB) });
    return volume;
  }

  async resizeVolume(id: string, capacityMib: number): Promise<Volume> {
    await this.#answer();
    const found = this.#find(id);
    const { volume, isHeld, files } = found;
    if (isHeld && capacityMib < volume.capacityMib) throw inUse();
    if (files.usedBytes > capacityMib * MIB) {
      throw new PlatformError('invalid_request', 'the files of the volume need more than that');
    }
    files.capacityBytes = capacityMib * MIB;
    found.volume = { ...volume, capacityMib };
    return found.volume;
  }

  async listVolumes(): Promise<readonly Volume[]> {
    await this.#answer();
    return [...this.#volumes.values()].map(({ volume }) => volume);
  }

  async volumeUsage(id: string): Promise<VolumeUsage> {
    const { usedBytes, capacityBytes } = await this.#filesOf(id);
    return { usedBytes, capacityBytes };
  }

  async removeVolume(id: string): Promise<void> {
    await this.#answer();
    if (this.#volumes.get(id)?.isHeld === true) throw inUse();
    this.#volumes.delete(id);
  }

  async readVolumeFile(id: string, path: string): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#filesOf(id)).read(checkEntryPath(path, 'path'));
  }

  async writeVolumeFile(
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    await (await this.#filesOf(id)).write(checkEntryPath(path, 'path'), content, signal);
    // An engine that went away during an upload does not confirm it.
    await this.#answer();
  }

  async listVolumeFiles(id: string, path: string): Promise<readonly VolumeEntry[]> {
    return (await this.#filesOf(id)).list(checkVolumePath(path, 'path'));
  }

  async statVolumeFile(id: string, path: string): Promise<VolumeEntry> {
    return (await this.#filesOf(id)).stat(checkVolumePath(path, 'path'));
  }

  async makeVolumeFolder(id: string, path: string): Promise<void> {
    (await this.#filesOf(id)).makeFolder(checkEntryPath(path, 'path'));
  }

  async copyVolumeFile(id: string, from: string, to: string): Promise<void> {
    (await this.#filesOf(id)).copy(checkEntryPath(from, 'from'), checkEntryPath(to, 'to'));
  }

  async renameVolumeFile(id: string, from: string, to: string): Promise<void> {
    (await this.#filesOf(id)).rename(checkEntryPath(from, 'from'), checkEntryPath(to, 'to'));
  }

  async removeVolumeFile(id: string, path: string, options: { readonly recursive: boolean }): Promise<void> {
    (await this.#filesOf(id)).remove(checkEntryPath(path, 'path'), options.recursive);
  }

  async #filesOf(id: string): Promise<FakeVolumeFiles> {
    await this.#answer();
    return this.#find(id).files;
  }

  #find(id: string): FakeVolume {
    const found = this.#volumes.get(id);
    if (found === undefined) throw new PlatformError('volume_not_found', 'There is no such volume');
    return found;
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    if (this.#isAway) throw new PlatformError('orchestrator_unreachable', 'the engine cannot be reached');
  }
}

function inUse(): PlatformError {
  return new PlatformError('volume_in_use', 'The volume is used by a sandbox; stop the sandbox first');
}
