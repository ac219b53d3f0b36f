import type { Volume, VolumeEntry, VolumeUsage } from '@svc/contract/orchestrator';
import { query, segment, type EngineCalls } from './engine-request.ts';

/** The engine's calls for volumes and the files in them. */
export class EngineVolumes {
  readonly #calls: Pick<EngineCalls, 'json' | 'download' | 'upload'>;

  constructor(calls: Pick<EngineCalls, 'json' | 'download' | 'upload'>) {
    this.#calls = calls;
  }

  createVolume(id: string, capacityMib: number, signal?: AbortSignal): Promise<Volume> {
    return this.#calls.json('POST', '/volumes', { id, capacityMib }, signal);
  }

  resizeVolume(id: string, capacityMib: number, signal?: AbortSignal): Promise<Volume> {
    return this.#calls.json('PATCH', `/volumes/${segment(id)}`, { capacityMib }, signal);
  }

  listVolumes(signal?: AbortSignal): Promise<readonly Volume[]> {
    return this.#calls.json('GET', '/volumes', undefined, signal);
  }

  volumeUsage(id: string, signal?: AbortSignal): Promise<VolumeUsage> {
    return this.#calls.json('GET', `/volumes/${segment(id)}/usage`, undefined, signal);
  }

  async removeVolume(id: string, signal?: AbortSignal): Promise<void> {
    await this.#calls.json('DELETE', `/volumes/${segment(id)}`, undefined, signal);
  }

  readVolumeFile(id: string, path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return this.#calls.download(`/volumes/${segment(id)}/content?${query({ path })}`, signal);
  }

  async writeVolumeFile(
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#calls.upload(`/volumes/${segment(id)}/content?${query({ path })}`, content, signal);
  }

  listVolumeFiles(id: string, path: string, signal?: AbortSignal): Promise<readonly VolumeEntry[]> {
    return this.#calls.json('GET', `/volumes/${segment(id)}/list?${query({ path })}`, undefined, signal);
  }

  statVolumeFile(id: string, path: string, signal?: AbortSignal): Promise<VolumeEntry> {
    return this.#calls.json('GET', `/volumes/${segment(id)}/stat?${query({ path })}`, undefined, signal);
  }

  async makeVolumeFolder(id: string, path: string, signal?: AbortSignal): Promise<void> {
    await this.#calls.json('POST', `/volumes/${segment(id)}/mkdir`, { path }, signal);
  }

  async copyVolumeFile(id: string, from: string, to: string, signal?: AbortSignal): Promise<void> {
    await this.#calls.json('POST', `/volumes/${segment(id)}/copy`, { from, to }, signal);
  }

  async renameVolumeFile(id: string, from: string, to: string, signal?: AbortSignal): Promise<void> {
    await this.#calls.json('POST', `/volumes/${segment(id)}/rename`, { from, to }, signal);
  }

  async removeVolumeFile(
    id: string,
    path: string,
    options: { readonly recursive: boolean },
    signal?: AbortSignal,
  ): Promise<void> {
    const target = `/volumes/${segment(id)}/content?${query({ path, ...options })}`;
    await this.#calls.json('DELETE', target, undefined, signal);
  }
}
