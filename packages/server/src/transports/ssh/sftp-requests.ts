import { posix } from 'node:path';
import { FileFailed, type ChannelFiles, type FileEntry } from '@svc/contract/channel';
import { describeEntry, encodeAttributes, readAttributes } from './sftp-attributes.ts';
import type { SftpHandles } from './sftp-handles.ts';
import {
  ANSWER,
  MAX_PACKET_BYTES,
  REQUEST,
  STATUS,
  uint64,
  type Field,
  type PacketReader,
} from './sftp-packet.ts';

/** Maximum content of one packet; the remainder is for its head. */
export const MAX_CONTENT_BYTES = MAX_PACKET_BYTES - 1024;
const ENTRIES_PER_ANSWER = 100;
const OPEN = { read: 1, write: 2, append: 4, create: 8, truncate: 16, exclusive: 32 } as const;

export interface Answer {
  readonly type: number;
  readonly fields: readonly Field[];
}

export interface SftpTarget {
  readonly files: ChannelFiles;
  readonly handles: SftpHandles;
  /** The folder of relative names. */
  readonly home: string;
}

type Work = (target: SftpTarget, reader: PacketReader) => Promise<Answer>;

export const OK: Answer = { type: ANSWER.status, fields: [STATUS.ok, '', ''] };

/** The handler of each request type. Other types are unsupported. */
export const WORKS: Readonly<Record<number, Work>> = {
  [REQUEST.open]: async ({ files, handles, home }, reader) => {
    const path = inHome(home, reader.text());
    const flags = reader.uint32();
    const { mode } = readAttributes(reader);
    const has = (flag: number) => (flags & flag) !== 0;
    const handle = await handles.open('file', () =>
      files.open(path, {
        read: has(OPEN.read),
        write: has(OPEN.write),
        append: has(OPEN.append),
        create: has(OPEN.create),
        truncate: has(OPEN.truncate),
        createNew: has(OPEN.create) && has(OPEN.exclusive),
        ...(mode === undefined ? {} : { mode }),
      }),
    );
    return { type: ANSWER.handle, fields: [{ counted: handle }] };
  },
  [REQUEST.close]: async ({ handles }, reader) => {
    await handles.close(reader.bytes());
    return OK;
  },
  [REQUEST.read]: async ({ files, handles }, reader) => {
    const handle = reader.bytes();
    const offset = reader.uint64();
    const length = Math.min(reader.uint32(), MAX_CONTENT_BYTES);
    const chunks = await handles.use(handle, 'file', (file) => files.read(file, offset, length));
    const content = Buffer.concat(chunks);
    if (content.length === 0 && length > 0) return status(STATUS.eof, 'end of file');
    return { type: ANSWER.data, fields: [{ counted: content }] };
  },
  [REQUEST.write]: async ({ files, handles }, reader) => {
    const handle = reader.bytes();
    const offset = reader.uint64();
    const content = reader.bytes();
    await handles.use(handle, 'file', (file) => files.write(file, offset, only(content)));
    return OK;
  },
  [REQUEST.stat]: async ({ files, home }, reader) =>
    attributes(await files.stat(inHome(home, reader.text()))),
  [REQUEST.lstat]: async ({ files, home }, reader) =>
    attributes(await files.stat(inHome(home, reader.text()), { followSymlink: false })),
  [REQUEST.fstat]: async ({ files, handles }, reader) =>
    attributes(await handles.use(reader.bytes(), 'file', (file) => files.fstat(file))),
  [REQUEST.setstat]: async ({ files, home }, reader) => {
    await files.setStat(inHome(home, reader.text()), readAttributes(reader));
    return OK;
  },
  [REQUEST.fsetstat]: async ({ files, handles }, reader) => {
    const handle = reader.bytes();
    const wanted = readAttributes(reader);
    await handles.use(handle, 'file', (file) => files.fsetstat(file, wanted));
    return OK;
  },
  [REQUEST.opendir]: async ({ files, handles, home }, reader) => {
    const path = inHome(home, reader.text());
    const handle = await handles.open('directory', () => files.openDir(path));
    return { type: ANSWER.handle, fields: [{ counted: handle }] };
  },
  [REQUEST.readdir]: async ({ files, handles }, reader) => {
    const page = await handles.use(reader.bytes(), 'directory', (directory) =>
      files.readDir(directory, ENTRIES_PER_ANSWER),
    );
    if (page.length === 0) return status(STATUS.eof, 'end of directory');
    const now = Date.now();
    return names(
      page.map((entry) => [posix.basename(entry.path), entry] as const),
      now,
    );
  },
  [REQUEST.remove]: async ({ files, home }, reader) => {
    await files.remove(inHome(home, reader.text()));
    return OK;
  },
  [REQUEST.rmdir]: async ({ files, home }, reader) => {
    await files.removeDir(inHome(home, reader.text()));
    return OK;
  },
  [REQUEST.mkdir]: async ({ files, home }, reader) => {
    const path = inHome(home, reader.text());
    const { mode } = readAttributes(reader);
    // The channel creates parents and accepts an existing directory; SFTP does neither.
    await files.stat(posix.dirname(path));
    if (await isThere(files, path)) throw new FileFailed('mkdir: File exists', 'EEXIST');
    await files.mkdir(path, mode === undefined ? {} : { mode });
    return OK;
  },
  [REQUEST.realpath]: async ({ files, home }, reader) =>
    path(await realPath(files, inHome(home, reader.text()))),
  [REQUEST.readlink]: async ({ files, home }, reader) =>
    path(await files.readLink(inHome(home, reader.text()))),
  [REQUEST.symlink]: async ({ files, home }, reader) => {
    // OpenSSH sends the target first, contrary to the draft, and all implementations follow it.
    const target = reader.text();
    await files.symlink(target, inHome(home, reader.text()));
    return OK;
  },
  [REQUEST.rename]: async ({ files, home }, reader) => {
    const from = inHome(home, reader.text());
    const to = inHome(home, reader.text());
    if (await isThere(files, to)) throw new FileFailed('rename: File exists', 'EEXIST');
    await files.rename(from, to);
    return OK;
  },
  [REQUEST.extended]: async (target, reader) => {
    const name = reader.text();
    const work = Object.hasOwn(EXTENSIONS, name) ? EXTENSIONS[name] : undefined;
    if (work === undefined) return status(STATUS.unsupported, `${name} is not supported`);
    return await work(target, reader);
  },
};

/** Supported extensions, by OpenSSH's names. */
export const EXTENSIONS: Readonly<Record<string, Work>> = {
  'posix-rename@openssh.com': async ({ files, home }, reader) => {
    const from = inHome(home, reader.text());
    await files.rename(from, inHome(home, reader.text()));
    return OK;
  },
  'lsetstat@openssh.com': async ({ files, home }, reader) => {
    const link = inHome(home, reader.text());
    await files.setStat(link, readAttributes(reader), { followSymlink: false });
    return OK;
  },
  'limits@openssh.com': async ({ handles }) =>
    await Promise.resolve({
      type: ANSWER.extended,
      fields: [
        uint64(MAX_PACKET_BYTES),
        uint64(MAX_CONTENT_BYTES),
        uint64(MAX_CONTENT_BYTES),
        uint64(handles.maximum),
      ],
    }),
};

export function status(code: number, message: string): Answer {
  return { type: ANSWER.status, fields: [code, message, ''] };
}

function inHome(home: string, name: string): string {
  if (name.startsWith('/')) return name;
  return name === '' || name === '.' ? home : posix.join(home, '/') + name;
}

/** The last part need not exist: clients resolve a path before they create it. */
async function realPath(files: ChannelFiles, wanted: string): Promise<string> {
  try {
    return await files.realPath(wanted);
  } catch (error) {
    if (!(error instanceof FileFailed) || error.errnoName !== 'ENOENT' || wanted === '/') throw error;
    return posix.join(await files.realPath(posix.dirname(wanted)), posix.basename(wanted));
  }
}

async function isThere(files: ChannelFiles, wanted: string): Promise<boolean> {
  try {
    await files.stat(wanted, { followSymlink: false });
    return true;
  } catch (error) {
    if (error instanceof FileFailed && error.errnoName === 'ENOENT') return false;
    throw error;
  }
}

function attributes(entry: FileEntry): Answer {
  return { type: ANSWER.attributes, fields: encodeAttributes(entry) };
}

function names(entries: readonly (readonly [string, FileEntry])[], now: number): Answer {
  const fields = entries.flatMap(([name, entry]) => [
    name,
    describeEntry(entry, name, now),
    ...encodeAttributes(entry),
  ]);
  return { type: ANSWER.name, fields: [entries.length, ...fields] };
}

/** An answer with one name without attributes. */
function path(name: string): Answer {
  return { type: ANSWER.name, fields: [1, name, name, 0] };
}

async function* only(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}
