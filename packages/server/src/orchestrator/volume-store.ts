import type { Volume, VolumeEntry, VolumeUsage } from '@svc/contract/orchestrator';

/**
 * The part of the orchestrator that keeps volumes and their files.
 * - Ids are chosen by the caller. `createVolume` of one that exists with the same capacity gives it back; with another
 *   capacity it is `name_already_exists`.
 * - `resizeVolume` to less than what is used is `invalid_request`.
 * - `removeVolume` succeeds when the volume is gone, and is `volume_in_use` while a sandbox has it.
 * - Everything else with an unknown id is `volume_not_found`.
 * - Paths are relative to the volume; absolute ones, `..`, empty parts and over-long names are `invalid_volume_path`, and so is
 *   a folder where a file is needed and the other way round. A missing file is `volume_file_not_found`.
 * - `writeVolumeFile` is atomic: an interrupted one leaves the old file, of several at once one wins whole. It makes the
 *   folders that lead to the file. Beyond the capacity it is `disk_full`.
 * - `removeVolumeFile` of a folder that is not empty needs `recursive`, else it is `invalid_request`.
 * - When the orchestrator is away every call fails with `orchestrator_unreachable`.
 */
export interface VolumeStore {
  createVolume(id: string, capacityMib: number, signal?: AbortSignal): Promise<Volume>;
  resizeVolume(id: string, capacityMib: number, signal?: AbortSignal): Promise<Volume>;
  listVolumes(signal?: AbortSignal): Promise<readonly Volume[]>;
  volumeUsage(id: string, signal?: AbortSignal): Promise<VolumeUsage>;
  removeVolume(id: string, signal?: AbortSignal): Promise<void>;
  readVolumeFile(id: string, path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  writeVolumeFile(
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void>;
  listVolumeFiles(id: string, path: string, signal?: AbortSignal): Promise<readonly VolumeEntry[]>;
  statVolumeFile(id: string, path: string, signal?: AbortSignal): Promise<VolumeEntry>;
  makeVolumeFolder(id: string, path: string, signal?: AbortSignal): Promise<void>;
  copyVolumeFile(id: string, from: string, to: string, signal?: AbortSignal): Promise<void>;
  renameVolumeFile(id: string, from: string, to: string, signal?: AbortSignal): Promise<void>;
  removeVolumeFile(
    id: string,
    path: string,
    options: { readonly recursive: boolean },
    signal?: AbortSignal,
  ): Promise<void>;
}
