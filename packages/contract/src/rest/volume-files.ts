import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { Confirmation, NO_FIELDS, nullable, Timestamp } from './fields.ts';
import { BYTES, type RestOperation } from './rest-operation.ts';
import { VOLUME_PARAMS } from './volumes.ts';

export const FILE_PATH_HEADER = 'x-svc-file-path';
export const FILE_RECURSIVE_HEADER = 'x-svc-file-recursive';

/** Callers may ask for that many paths at once. */
const MAX_PATHS = 100;

const PATH_HEADER = {
  [FILE_PATH_HEADER]: Type.String({
    description:
      'URL-safe base64 without padding of the UTF-8 path in the volume; empty for the volume itself',
  }),
};
const PathHeader = strictObject(PATH_HEADER);
const Path = Type.String({ description: 'Relative to the volume' });

export const VolumeFileInfo = strictObject({
  path: Path,
  kind: Type.Enum(['file', 'directory'], { description: 'A link counts as a file' }),
  size: Type.Integer({ description: 'Bytes' }),
  mode: Type.Integer({ description: 'Permission bits' }),
  uid: Type.Integer(),
  gid: Type.Integer(),
  readonly: Type.Boolean({ description: 'No process may write to it' }),
  accessed_at: nullable(Timestamp),
  modified_at: nullable(Timestamp),
  created_at: nullable(Timestamp),
});
export type VolumeFileInfo = Static<typeof VolumeFileInfo>;

const COMMON = {
  tag: 'volumes',
  audience: 'both',
  role: 'member',
  params: VOLUME_PARAMS,
  query: NO_FIELDS,
  headers: PathHeader,
  status: 200,
} as const;
const ERRORS = [
  'invalid_volume_path',
  'forbidden',
  'volume_not_found',
  'volume_file_not_found',
  'invalid_state_transition',
  'orchestrator_unreachable',
  'unavailable',
] as const;
const WRITE_ERRORS = [...ERRORS, 'disk_full', 'insufficient_storage'] as const;
/** For calls that test whether a file exists: its absence is an answer, not an error of the volume. */
const QUESTION_ERRORS = [
  'invalid_volume_path',
  'forbidden',
  'volume_not_found',
  'invalid_state_transition',
  'orchestrator_unreachable',
  'unavailable',
] as const;

const CopyBody = strictObject({ from: Path, to: Path });

export const volumeFileOperations = {
  'volumeFiles.list': {
    ...COMMON,
    summary: 'List what lies directly in a folder of a volume',
    method: 'GET',
    path: '/volumes/{id}/files',
    body: null,
    output: strictObject({ entries: Type.Array(VolumeFileInfo) }),
    errors: ERRORS,
  },
  'volumeFiles.remove': {
    ...COMMON,
    summary: 'Remove a file or folder of a volume',
    method: 'DELETE',
    path: '/volumes/{id}/files',
    headers: strictObject({
      ...PATH_HEADER,
      [FILE_RECURSIVE_HEADER]: Type.Optional(
        Type.Enum(['true', 'false'], { description: 'With all that is in it', default: 'false' }),
      ),
    }),
    body: null,
    output: Confirmation,
    errors: ERRORS,
  },
  'volumeFiles.read': {
    ...COMMON,
    summary: 'Read a file of a volume',
    method: 'GET',
    path: '/volumes/{id}/files/content',
    body: null,
    output: BYTES,
    errors: ERRORS,
  },
  'volumeFiles.write': {
    ...COMMON,
    summary: 'Write a file of a volume, whole: readers see the old one until it is complete',
    method: 'PUT',
    path: '/volumes/{id}/files/content',
    body: BYTES,
    output: Confirmation,
    errors: WRITE_ERRORS,
  },
  'volumeFiles.mkdir': {
    ...COMMON,
    summary: 'Make a folder in a volume, and those that lead to it',
    method: 'POST',
    path: '/volumes/{id}/files/mkdir',
    headers: NO_FIELDS,
    body: strictObject({ path: Path }),
    output: Confirmation,
    errors: WRITE_ERRORS,
  },
  'volumeFiles.copy': {
    ...COMMON,
    summary: 'Copy a file or folder within a volume',
    method: 'POST',
    path: '/volumes/{id}/files/copy',
    headers: NO_FIELDS,
    body: CopyBody,
    output: Confirmation,
    errors: WRITE_ERRORS,
  },
  'volumeFiles.rename': {
    ...COMMON,
    summary: 'Move a file or folder within a volume',
    method: 'POST',
    path: '/volumes/{id}/files/rename',
    headers: NO_FIELDS,
    body: CopyBody,
    output: Confirmation,
    errors: WRITE_ERRORS,
  },
  'volumeFiles.stat': {
    ...COMMON,
    summary: 'Describe a file or folder of a volume',
    method: 'GET',
    path: '/volumes/{id}/files/stat',
    body: null,
    output: strictObject({ metadata: VolumeFileInfo }),
    errors: ERRORS,
  },
  'volumeFiles.exists': {
    ...COMMON,
    summary: 'Whether a volume has a file or folder of this path',
    method: 'GET',
    path: '/volumes/{id}/files/exists',
    body: null,
    output: strictObject({ exists: Type.Boolean() }),
    errors: QUESTION_ERRORS,
  },
  'volumeFiles.existMany': {
    ...COMMON,
    summary: 'Which of these paths a volume has',
    audience: 'user',
    method: 'POST',
    path: '/orgs/{slug}/volumes/{id}/files/exists',
    headers: NO_FIELDS,
    body: strictObject({ paths: Type.Array(Path, { maxItems: MAX_PATHS }) }),
    output: strictObject({ existing_paths: Type.Array(Path) }),
    errors: QUESTION_ERRORS,
  },
} as const satisfies Record<string, RestOperation>;
