import type { EngineClient } from '@svc/engine/client';

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
export type VolumeStore = Pick<
  EngineClient['volumes'],
  | 'createVolume'
  | 'resizeVolume'
  | 'listVolumes'
  | 'volumeUsage'
  | 'removeVolume'
  | 'readVolumeFile'
  | 'writeVolumeFile'
  | 'listVolumeFiles'
  | 'statVolumeFile'
  | 'makeVolumeFolder'
  | 'copyVolumeFile'
  | 'renameVolumeFile'
  | 'removeVolumeFile'
>;
