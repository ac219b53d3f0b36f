import { ChannelError, FileFailed } from '@svc/contract/channel';
import { PlatformError } from '@svc/contract/errors';
import type { ErrorCode } from '@svc/contract/errors';

/** The error for an errno of a file operation on `path`. */
export function asPlatformError(error: unknown, path: string): unknown {
  if (error instanceof ChannelError) {
    return new PlatformError(
      'unavailable',
      'The files of the volume were unavailable for a moment; try again',
      {
        cause: error,
      },
    );
  }
  if (!(error instanceof FileFailed)) return error;
  const known = MEANING.get(error.errnoName ?? '');
  if (known === undefined)
    return new PlatformError('internal', 'The file operation failed', { cause: error });
  return new PlatformError(known.code, known.message(JSON.stringify(path)), {
    details: { path },
    cause: error,
  });
}

interface Meaning {
  readonly code: ErrorCode;
  readonly message: (path: string) => string;
}

const MISSING: Meaning = {
  code: 'volume_file_not_found',
  message: (path) => `There is no ${path} in the volume`,
};
const FULL: Meaning = {
  code: 'disk_full',
  message: () => 'The volume is full; remove files or raise its capacity',
};
const FORBIDDEN: Meaning = { code: 'forbidden', message: (path) => `${path} may not be changed` };
const BROKEN: Meaning = {
  code: 'unavailable',
  message: () => "The volume has a disk error; stop what uses it, check the host's disk and try again",
};
const NOT_EMPTY: Meaning = { code: 'invalid_request', message: (path) => `The folder ${path} is not empty` };

const MEANING: ReadonlyMap<string, Meaning> = new Map([
  ['ENOENT', MISSING],
  [
    'ENOTDIR',
    { code: 'invalid_volume_path', message: (path: string) => `A part of ${path} is not a folder` },
  ],
  ['EISDIR', { code: 'invalid_volume_path', message: (path: string) => `${path} is a folder; name a file` }],
  [
    'EEXIST',
    { code: 'invalid_volume_path', message: (path: string) => `${path} exists and is not a folder` },
  ],
  ['ENOTEMPTY', NOT_EMPTY],
  ['ENOSPC', FULL],
  ['EDQUOT', FULL],
  ['EFBIG', FULL],
  ['EACCES', FORBIDDEN],
  ['EPERM', FORBIDDEN],
  [
    'ELOOP',
    { code: 'invalid_volume_path', message: (path: string) => `The links in ${path} lead in a circle` },
  ],
  [
    'ENAMETOOLONG',
    { code: 'invalid_volume_path', message: (path: string) => `The name ${path} is too long` },
  ],
  ['EINVAL', { code: 'invalid_volume_path', message: (path: string) => `${path} cannot be used for this` }],
  ['EIO', BROKEN],
  ['EROFS', BROKEN],
  ['EUCLEAN', BROKEN],
  ['EMFILE', { code: 'unavailable', message: () => 'Too many files of the volume are open; try again' }],
] satisfies [string, Meaning][]);
