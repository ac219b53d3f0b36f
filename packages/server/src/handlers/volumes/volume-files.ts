import { PlatformError } from '@svc/contract';
import type { VolumeEntry } from '@svc/contract/orchestrator';
import {
  checkEntryPath,
  checkVolumePath,
  decodeVolumePath,
  FILE_PATH_HEADER,
  FILE_RECURSIVE_HEADER,
  type VolumeFileInfo,
} from '@svc/contract/rest';
import { eachLimited } from '../../tasks/each-limited.ts';
import { ensureMade, type VolumeMaker } from '../../volumes/make-volume.ts';
import { changeFile } from './change-file.ts';
import { followUpload } from '../../dispatch/follow-upload.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { requireActive, requireVolume } from './volume-checks.ts';

type FileHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `volumeFiles.${string}`>>;
type PathHeaders = { readonly [FILE_PATH_HEADER]: string };

const WRITE_BITS = 0o222;
const MAX_AT_ONCE = 8;

export function volumeFileHandlers(parts: VolumeMaker): FileHandlers {
  return { ...readHandlers(parts), ...changeHandlers(parts) };
}

function readHandlers(
  parts: VolumeMaker,
): Pick<FileHandlers, `volumeFiles.${'list' | 'read' | 'stat' | 'exists' | 'existMany'}`> {
  const { volumeStore } = parts;
  return {
    'volumeFiles.list': async ({ params, headers }, call) => {
      const path = pathOf(headers);
      const id = await requireFiles(parts, call, params.id);
      const entries = await volumeStore.listVolumeFiles(id, path, call.signal);
      return { entries: entries.map(toFileInfo) };
    },
    'volumeFiles.read': async ({ params, headers }, call) => {
      const path = entryPathOf(headers);
      const id = await requireFiles(parts, call, params.id);
      return await volumeStore.readVolumeFile(id, path, call.signal);
    },
    'volumeFiles.stat': async ({ params, headers }, call) => {
      const path = pathOf(headers);
      const id = await requireFiles(parts, call, params.id);
      return { metadata: toFileInfo(await volumeStore.statVolumeFile(id, path, call.signal)) };
    },
    'volumeFiles.exists': async ({ params, headers }, call) => {
      const path = pathOf(headers);
      const id = await requireFiles(parts, call, params.id);
      return { exists: await exists(parts, id, path, call.signal) };
    },
    'volumeFiles.existMany': async ({ params, body }, call) => {
      const paths = body.paths.map((path, index) => checkVolumePath(path, `paths[${index}]`));
      const id = await requireFiles(parts, call, params.id);
      const existing = new Set<string>();
      await eachLimited(paths, MAX_AT_ONCE, async (path) => {
        if (await exists(parts, id, path, call.signal)) existing.add(path);
      });
      return { existing_paths: paths.filter((path) => existing.has(path)) };
    },
  };
}

function changeHandlers(
  parts: VolumeMaker,
): Pick<FileHandlers, `volumeFiles.${'write' | 'remove' | 'mkdir' | 'copy' | 'rename'}`> {
  const { volumeStore } = parts;
  return {
    'volumeFiles.write': async ({ params, headers, body }, call) => {
      const path = entryPathOf(headers);
      const id = await requireFiles(parts, call, params.id);
      const upload = followUpload(body);
      return await changeFile(
        parts.database,
        call,
        'volume_file_written',
        { volume_id: id, path },
        async () => {
          try {
            await volumeStore.writeVolumeFile(id, path, upload.content, call.signal);
            return { bytes: upload.bytes() };
          } catch (error) {
            // A broken body also breaks the connection to the engine; the body's error is the cause.
            throw upload.failure() ?? error;
          }
        },
      );
    },
    'volumeFiles.remove': async ({ params, headers }, call) => {
      const path = entryPathOf(headers);
      const recursive = headers[FILE_RECURSIVE_HEADER] === 'true';
      const id = await requireFiles(parts, call, params.id);
      return await changeFile(
        parts.database,
        call,
        'volume_file_removed',
        { volume_id: id, path, recursive },
        () => volumeStore.removeVolumeFile(id, path, { recursive }, call.signal),
      );
    },
    'volumeFiles.mkdir': async ({ params, body }, call) => {
      const path = checkEntryPath(body.path, 'path');
      const id = await requireFiles(parts, call, params.id);
      return await changeFile(parts.database, call, 'volume_folder_created', { volume_id: id, path }, () =>
        volumeStore.makeVolumeFolder(id, path, call.signal),
      );
    },
    'volumeFiles.copy': async ({ params, body }, call) => {
      const [from, to] = [checkEntryPath(body.from, 'from'), checkEntryPath(body.to, 'to')];
      const id = await requireFiles(parts, call, params.id);
      return await changeFile(parts.database, call, 'volume_file_copied', { volume_id: id, from, to }, () =>
        volumeStore.copyVolumeFile(id, from, to, call.signal),
      );
    },
    'volumeFiles.rename': async ({ params, body }, call) => {
      const [from, to] = [checkEntryPath(body.from, 'from'), checkEntryPath(body.to, 'to')];
      const id = await requireFiles(parts, call, params.id);
      return await changeFile(parts.database, call, 'volume_file_renamed', { volume_id: id, from, to }, () =>
        volumeStore.renameVolumeFile(id, from, to, call.signal),
      );
    },
  };
}

/** Makes sure that the volume exists, also in the engine. @returns its id as the engine spells it */
async function requireFiles(parts: VolumeMaker, call: RestCall, givenId: string): Promise<string> {
  const volume = requireActive(await requireVolume(parts.database, call, givenId));
  await ensureMade(parts, volume);
  return volume.id;
}

function pathOf(headers: PathHeaders): string {
  return decodeVolumePath(headers[FILE_PATH_HEADER], FILE_PATH_HEADER);
}

function entryPathOf(headers: PathHeaders): string {
  return checkEntryPath(pathOf(headers), FILE_PATH_HEADER);
}

async function exists(
  { volumeStore }: VolumeMaker,
  id: string,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await volumeStore.statVolumeFile(id, path, signal);
    return true;
  } catch (error) {
    // The path itself is valid: the error means that it has a file where it needs a folder.
    if (PlatformError.is(error, 'volume_file_not_found') || PlatformError.is(error, 'invalid_volume_path')) {
      return false;
    }
    throw error;
  }
}

function toFileInfo(entry: VolumeEntry): VolumeFileInfo {
  const { path, kind, size, mode, uid, gid, accessedAt, modifiedAt } = entry;
  return {
    path,
    kind: kind === 'directory' ? 'directory' : 'file',
    size,
    mode,
    uid,
    gid,
    readonly: (mode & WRITE_BITS) === 0,
    accessed_at: accessedAt,
    modified_at: modifiedAt,
    created_at: null,
  };
}
