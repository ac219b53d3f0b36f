import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject, strictRecord } from '../spec/strict.ts';
import { Confirmation, NO_FIELDS, nullable, pageOf, Timestamp, Uuid } from './fields.ts';
import { BYTES, type RestOperation } from './rest-operation.ts';

/** Longest path of Linux, with its end. */
const MAX_PATH_LENGTH = 4096;
const MAX_DEPTH = 32;
const MAX_LINK_SECONDS = 7 * 24 * 3600;
const DEFAULT_LINK_SECONDS = 3600;
const MAX_ENTRIES = 1000;
const DEFAULT_ENTRIES = 1000;

/** Below `/v1`; pages of every origin may use it, because a link is a credential of its own. */
export const LINK_PATH = '/file-links';

const OF_SANDBOX = strictObject({ sandbox_id: Uuid });

const Path = Type.String({
  minLength: 1,
  maxLength: MAX_PATH_LENGTH,
  description: 'In the sandbox; a relative one begins at its working directory',
});
const Mode = Type.String({ pattern: '^0?[0-7]{3,4}$', description: 'Permission bits in octal, as `0644`' });
const Owner = Type.String({
  pattern: '^[^:\\s]{1,64}(:[^:\\s]{1,64})?$',
  description: 'User, or `user:group`; names of the sandbox, or numbers',
});

/** Extended attributes that programs set may have any name; ours have one that a header can carry, too. */
const Metadata = Type.Record(Type.String(), Type.String(), {
  description: 'Extended attributes in the namespace `user`, without that prefix',
});
const NewMetadata = strictRecord(
  '^[A-Za-z0-9._-]{1,200}$',
  Type.String({ maxLength: 4096, pattern: '^[^\u0000]*$' }),
  { maxProperties: 64, description: 'Replaces all metadata; names and values together 4096 bytes at most' },
);

export const FileInfo = strictObject({
  path: Type.String({ description: 'Absolute; links in it are not followed' }),
  name: Type.String({ description: 'The last part of the path' }),
  kind: Type.Enum(['file', 'directory', 'symlink', 'other']),
  size: Type.Integer({ description: 'Bytes' }),
  mode: Type.String({ description: 'Permission bits in octal, as `0644`' }),
  uid: Type.Integer(),
  gid: Type.Integer(),
  owner: Type.String({ description: 'Name of the user; the number when it has no name' }),
  group: Type.String({ description: 'Name of the group; the number when it has no name' }),
  modified_at: nullable(Timestamp),
  metadata: Metadata,
  target: nullable(Type.String(), {
    description: 'Where a link ends, with all links resolved; null when that is missing, and for others',
  }),
});
export type FileInfo = Static<typeof FileInfo>;

/** Of a new file. */
const WRITE_QUERY = {
  owner: Type.Optional(Owner),
  mode: Type.Optional(Mode),
  parents: Type.Optional(
    Type.Boolean({ default: false, description: 'Make the folders that lead to it, as its owner' }),
  ),
};
const RANGE_HEADERS = strictObject({
  range: Type.Optional(
    Type.String({ maxLength: 256, description: 'One range, as `bytes=0-1023`; several are ignored' }),
  ),
  'if-range': Type.Optional(
    Type.String({ maxLength: 256, description: 'The range is ignored: files have no entity tag' }),
  ),
});
/** What a link consists of. */
const LINK_QUERY = {
  sandbox_id: Uuid,
  path: Path,
  expires: Type.Integer({ minimum: 0, description: 'When the link ends, in seconds since 1970' }),
  by: Type.String({ maxLength: 64, description: 'The credential that the link was made with' }),
  signature: Type.String({ maxLength: 128 }),
};

const COMMON = {
  tag: 'files',
  audience: 'both',
  role: 'member',
  params: OF_SANDBOX,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  body: null,
  status: 200,
} as const;
const ERRORS = [
  'sandbox_not_found',
  'sandbox_not_running',
  'not_found',
  'forbidden',
  'orchestrator_unreachable',
  'unavailable',
] as const;
const WRITE_ERRORS = [...ERRORS, 'disk_full'] as const;

export const fileOperations = {
  'files.list': {
    ...COMMON,
    summary:
      'List a folder of a running sandbox, and what lies below it: each folder before its content, by name',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/files',
    query: strictObject({
      path: Path,
      depth: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_DEPTH,
          default: 1,
          description: 'How many levels; links to folders are not followed',
        }),
      ),
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_ENTRIES,
          default: DEFAULT_ENTRIES,
          description: 'Page size',
        }),
      ),
      cursor: Type.Optional(
        Type.String({ minLength: 1, maxLength: 8192, description: '`next_cursor` of the page before' }),
      ),
    }),
    output: pageOf(FileInfo),
    errors: [...ERRORS, 'invalid_cursor'],
  },
  'files.stat': {
    ...COMMON,
    summary: 'Describe a file, folder or link of a running sandbox',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/files/stat',
    query: strictObject({ path: Path }),
    output: FileInfo,
    errors: ERRORS,
  },
  'files.read': {
    ...COMMON,
    summary: 'Read a file of a running sandbox; with `Range`, a part of it, which is answered with 206',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/files/content',
    query: strictObject({ path: Path }),
    headers: RANGE_HEADERS,
    output: BYTES,
    errors: [...ERRORS, 'range_not_satisfiable', 'rate_limited'],
  },
  'files.write': {
    ...COMMON,
    summary: 'Write a file of a running sandbox, whole: readers see the old one until it is complete',
    method: 'PUT',
    path: '/sandboxes/{sandbox_id}/files/content',
    query: strictObject({ path: Path, ...WRITE_QUERY, metadata: Type.Optional(NewMetadata) }),
    body: BYTES,
    output: FileInfo,
    errors: [...WRITE_ERRORS, 'rate_limited'],
  },
  'files.makeFolder': {
    ...COMMON,
    summary: 'Make a folder in a running sandbox',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/files/mkdir',
    body: strictObject({
      path: Path,
      owner: Type.Optional(Owner),
      mode: Type.Optional(Mode),
      parents: Type.Optional(Type.Boolean({ default: false, description: 'Make those that lead to it too' })),
    }),
    output: FileInfo,
    errors: [...WRITE_ERRORS, 'name_already_exists'],
  },
  'files.move': {
    ...COMMON,
    summary: 'Move a file, folder or link within a running sandbox',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/files/move',
    body: strictObject({
      from: Path,
      to: Path,
      overwrite: Type.Optional(
        Type.Boolean({ default: false, description: 'Replace a file or an empty folder that is there' }),
      ),
      parents: Type.Optional(
        Type.Boolean({ default: false, description: 'Make the folders that lead to it' }),
      ),
    }),
    output: FileInfo,
    errors: [...WRITE_ERRORS, 'name_already_exists'],
  },
  'files.remove': {
    ...COMMON,
    summary: 'Remove a file, folder or link of a running sandbox',
    method: 'DELETE',
    path: '/sandboxes/{sandbox_id}/files',
    query: strictObject({
      path: Path,
      recursive: Type.Optional(Type.Boolean({ default: false, description: 'With all that is in it' })),
    }),
    output: Confirmation,
    errors: ERRORS,
  },
  'files.change': {
    ...COMMON,
    summary: 'Change owner, mode or metadata of a file or folder of a running sandbox',
    method: 'PATCH',
    path: '/sandboxes/{sandbox_id}/files',
    body: strictObject({
      path: Path,
      owner: Type.Optional(Owner),
      mode: Type.Optional(Mode),
      metadata: Type.Optional(NewMetadata),
    }),
    output: FileInfo,
    errors: ERRORS,
  },
  'files.createLink': {
    ...COMMON,
    summary: 'Make a link with which anyone may read or write one file of a running sandbox until a time',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/files/links',
    body: strictObject({
      path: Path,
      method: Type.Enum(['GET', 'PUT'], { description: 'GET: to read the file; PUT: to write it' }),
      expires_in_secs: Type.Optional(
        Type.Integer({ minimum: 1, maximum: MAX_LINK_SECONDS, default: DEFAULT_LINK_SECONDS }),
      ),
      ...WRITE_QUERY,
    }),
    output: strictObject({
      address: nullable(Type.String(), {
        description:
          'Below the address of the server, with `/v1`. Null when the call is repeated with the same idempotency key',
      }),
      method: Type.Enum(['GET', 'PUT']),
      path: Type.String({ description: 'Absolute' }),
      expires_at: Timestamp,
    }),
    secretField: 'address',
    errors: ['sandbox_not_found'],
  },
  'files.readByLink': {
    ...COMMON,
    summary: 'Read a file by a link: with no credential, from any page, until the link ends',
    audience: 'anyone',
    method: 'GET',
    path: LINK_PATH,
    params: NO_FIELDS,
    query: strictObject(LINK_QUERY),
    headers: RANGE_HEADERS,
    output: BYTES,
    errors: [...ERRORS, 'range_not_satisfiable', 'rate_limited'],
  },
  'files.writeByLink': {
    ...COMMON,
    summary: 'Write a file by a link: with no credential, from any page, until the link ends',
    audience: 'anyone',
    method: 'PUT',
    path: LINK_PATH,
    params: NO_FIELDS,
    query: strictObject({ ...LINK_QUERY, ...WRITE_QUERY }),
    body: BYTES,
    output: FileInfo,
    errors: [...WRITE_ERRORS, 'rate_limited'],
  },
} as const satisfies Record<string, RestOperation>;
