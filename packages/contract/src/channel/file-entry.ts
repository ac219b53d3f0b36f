import type { Payload } from '../frames/frame.ts';
import { ChannelError } from './channel-error.ts';
import { own, readInteger, readOptionalInteger, readRecord, readText, readUint } from './payload-fields.ts';

/** Metadata of a file, as the sandbox reports it. */
export interface FileEntry {
  readonly path: string;
  readonly kind: 'file' | 'dir' | 'symlink' | 'other';
  readonly size: number;
  /** The full st_mode, type bits included. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedSeconds: number | null;
  readonly accessedSeconds: number | null;
}

/** What to change of a file; times in whole seconds. */
export interface FileAttributes {
  readonly mode?: number | undefined;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  readonly size?: number | undefined;
  readonly atime?: number | undefined;
  readonly mtime?: number | undefined;
}

export interface OpenFlags {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly append?: boolean;
  readonly create?: boolean;
  readonly truncate?: boolean;
  /** Fails when the file exists, a dangling link included. */
  readonly createNew?: boolean;
  /** With `createNew`: the file is deleted with its handle or connection, unless it was renamed. Agents other than svc-init keep it. */
  readonly temporary?: boolean;
  readonly mode?: number;
}

export function readEntry(value: unknown): FileEntry {
  const entry = readRecord(value, 'file entry');
  return {
    path: readText(entry, 'path'),
    kind: readKind(entry),
    size: readUint(entry, 'size'),
    mode: readUint(entry, 'mode'),
    uid: readInteger(entry, 'uid'),
    gid: readInteger(entry, 'gid'),
    modifiedSeconds: readOptionalInteger(entry, 'mtime') ?? readOptionalInteger(entry, 'modified'),
    accessedSeconds: readOptionalInteger(entry, 'atime'),
  };
}

export function encodeAttributes(attributes: FileAttributes): Payload {
  const { mode, uid, gid, size, atime, mtime } = attributes;
  return {
    mode: mode ?? null,
    uid: uid ?? null,
    gid: gid ?? null,
    size: size ?? null,
    atime: atime ?? null,
    mtime: mtime ?? null,
  };
}

export function encodeOpenFlags(flags: OpenFlags): Payload {
  return {
    read: flags.read ?? false,
    write: flags.write ?? false,
    append: flags.append ?? false,
    create: flags.create ?? false,
    truncate: flags.truncate ?? false,
    create_new: flags.createNew ?? false,
    mode: flags.mode ?? null,
    // Not of the public protocol.
    ...(flags.temporary === true ? { temporary: true } : {}),
  };
}

function readKind(entry: Payload): FileEntry['kind'] {
  const kind = own(entry, 'kind');
  if (kind === 'file' || kind === 'dir' || kind === 'symlink' || kind === 'other') return kind;
  throw new ChannelError('protocol', 'The sandbox sent a file entry of an unknown kind');
}
