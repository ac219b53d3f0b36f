import type { Volume, VolumeEntry, VolumeUsage } from '@svc/contract/orchestrator';
import { PlatformError } from '@svc/contract';
import type { FleetMembers } from './fleet-members.ts';
import type { NodeFinder } from './node-finder.ts';
import type { VolumeStore } from './volume-store.ts';

const NO_SIGNAL = new AbortController().signal;

/** Volumes on several nodes. A volume stays on its node, and so do the sandboxes that mount it. */
export class FleetVolumes implements VolumeStore {
  readonly #members: FleetMembers;
  readonly #volumes: NodeFinder;

  constructor(members: FleetMembers, volumes: NodeFinder) {
    this.#members = members;
    this.#volumes = volumes;
  }

  /** A new one is made where most space is free. */
  async createVolume(id: string, capacityMib: number, signal = NO_SIGNAL): Promise<Volume> {
    const node = (await this.#volumes.find(id, signal)) ?? (await this.#roomiest(signal));
    const volume = await this.#members.portsOf(node).volumeStore.createVolume(id, capacityMib, signal);
    this.#volumes.note(id, node);
    return volume;
  }

  async resizeVolume(id: string, capacityMib: number, signal = NO_SIGNAL): Promise<Volume> {
    return await this.#call(id, async (store) => await store.resizeVolume(id, capacityMib, signal), signal);
  }

  async listVolumes(signal = NO_SIGNAL): Promise<readonly Volume[]> {
    const { answers } = await this.#members.ask(
      async ({ volumeStore }, deadline) => await volumeStore.listVolumes(deadline),
      signal,
    );
    return answers.flatMap(({ answer }) => answer);
  }

  async volumeUsage(id: string, signal = NO_SIGNAL): Promise<VolumeUsage> {
    return await this.#call(id, async (store) => await store.volumeUsage(id, signal), signal);
  }

  async removeVolume(id: string, signal = NO_SIGNAL): Promise<void> {
    const node = await this.#volumes.find(id, signal);
    if (node === undefined) return;
    await this.#members.portsOf(node).volumeStore.removeVolume(id, signal);
    this.#volumes.forget(id);
  }

  async readVolumeFile(id: string, path: string, signal = NO_SIGNAL): Promise<AsyncIterable<Uint8Array>> {
    return await this.#call(id, async (store) => await store.readVolumeFile(id, path, signal), signal);
  }

  async writeVolumeFile(
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    signal = NO_SIGNAL,
  ): Promise<void> {
    await this.#call(id, async (store) => await store.writeVolumeFile(id, path, content, signal), signal);
  }

  async listVolumeFiles(id: string, path: string, signal = NO_SIGNAL): Promise<readonly VolumeEntry[]> {
    return await this.#call(id, async (store) => await store.listVolumeFiles(id, path, signal), signal);
  }

  async statVolumeFile(id: string, path: string, signal = NO_SIGNAL): Promise<VolumeEntry> {
    return await this.#call(id, async (store) => await store.statVolumeFile(id, path, signal), signal);
  }

  async makeVolumeFolder(id: string, path: string, signal = NO_SIGNAL): Promise<void> {
    await this.#call(id, async (store) => await store.makeVolumeFolder(id, path, signal), signal);
  }

  async copyVolumeFile(id: string, from: string, to: string, signal = NO_SIGNAL): Promise<void> {
    await this.#call(id, async (store) => await store.copyVolumeFile(id, from, to, signal), signal);
  }

  async renameVolumeFile(id: string, from: string, to: string, signal = NO_SIGNAL): Promise<void> {
    await this.#call(id, async (store) => await store.renameVolumeFile(id, from, to, signal), signal);
  }

  async removeVolumeFile(
    id: string,
    path: string,
    options: { readonly recursive: boolean },
    signal = NO_SIGNAL,
  ): Promise<void> {
    await this.#call(id, async (store) => await store.removeVolumeFile(id, path, options, signal), signal);
  }

  async #call<Answer>(
    id: string,
    question: (store: VolumeStore) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer> {
    return await this.#volumes.call(
      id,
      'volume_not_found',
      async ({ volumeStore }) => await question(volumeStore),
      signal,
    );
  }

  async #roomiest(signal: AbortSignal): Promise<string> {
    const { answers } = await this.#members.ask(async ({ nodes }, deadline) => {
      const [space] = await nodes.storage(deadline);
      return space === undefined || space.isShort ? 0 : space.freeBytes - space.promisedBytes;
    }, signal);
    const [best] = answers.toSorted((a, b) => b.answer - a.answer);
    if (best !== undefined) return best.node;
    throw new PlatformError('orchestrator_unreachable', 'the fleet has no node');
  }
}
