import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import { PlatformError, type ChannelFiles, type FileEntry } from '@svc/contract';
import { KeyedMutex } from '@svc/contract/async';
import type { WorkToolInput, WorkToolOutput } from '@svc/contract/mcp';
import { posix } from 'node:path';
import { fileUri } from './resource-uri.ts';
import { editText } from './edit-text.ts';
import { kindOf } from './file-content.ts';
import { readLines } from './read-lines.ts';
import type { ToolAnswer, WorkToolHandlers } from './tool-answer.ts';
import type { ToolContext } from './tool-context.ts';

/** The size limit of images that are shown and of texts that are edited. */
const MAX_IMAGE_BYTES = 4 * 1024 * 1024;
const MAX_EDITED_BYTES = 8 * 1024 * 1024;
const SNIFFED_BYTES = 8192;
const DEFAULT_LISTED = 200;
const DEFAULT_PIECE_BYTES = 256 * 1024;
const EXECUTABLE = 0o755;
const PERMISSIONS = 0o7777;

type FileTools = Pick<WorkToolHandlers, Extract<keyof WorkToolHandlers, `sandbox_${string}_file${'' | 's'}`>>;

export function fileTools(): FileTools {
  const mutex = new KeyedMutex();
  return {
    sandbox_read_file: (input, context) =>
      context.files(input.sandbox, input.path, (files, path) => readFile(files, path, input, context)),
    sandbox_write_file: (input, context) =>
      context.files(input.sandbox, input.path, async (files, path) => {
        const { signal } = context;
        await files.mkdir(posix.dirname(path), {}, signal);
        await files.writeFile(path, Buffer.from(input.content), {}, signal);
        if (input.is_executable === true) await files.setStat(path, { mode: EXECUTABLE }, {}, signal);
        return await written(files, path, input, context);
      }),
    sandbox_edit_file: (input, context) =>
      context.files(input.sandbox, input.path, (files, path) =>
        // Two edits of one file at a time would undo each other.
        mutex.run(`${context.namespace}/${input.sandbox}${path}`, () =>
          editFile(files, path, input, context),
        ),
      ),
    sandbox_list_files: (input, context) =>
      context.files(input.sandbox, input.path ?? '.', (files, path) =>
        listFiles(files, path, input, context),
      ),
    sandbox_upload_file: (input, context) =>
      context.files(input.sandbox, input.path, async (files, path) => {
        await upload(files, path, input, context.signal);
        return await written(files, path, input, context);
      }),
    sandbox_download_file: (input, context) =>
      context.files(input.sandbox, input.path, (files, path) => download(files, path, input, context)),
    sandbox_remove_file: (input, context) =>
      context.files(input.sandbox, input.path, async (files, path) => {
        const { kind } = await files.stat(path, { followSymlink: false }, context.signal);
        const isFolder = kind === 'dir';
        if (isFolder) await files.removeDir(path, { recursive: input.recursive ?? false }, context.signal);
        else await files.remove(path, context.signal);
        return { structured: {}, text: `${path} was removed` };
      }),
  };
}

async function readFile(
  files: ChannelFiles,
  path: string,
  input: WorkToolInput<'sandbox_read_file'>,
  context: ToolContext,
): Promise<ToolAnswer<WorkToolOutput<'sandbox_read_file'>>> {
  const { signal } = context;
  const { size } = await requireFile(files, path, signal);
  const kind = kindOf(path, await beginning(files, path, signal));
  const about = { path, size_bytes: size, uri: uriOf(context, input, path) };
  const noText = { ...about, first_line: null, last_line: null, has_more: false };
  if (kind.isImage && size <= MAX_IMAGE_BYTES) {
    const bytes = Buffer.from(await files.readFile(path, { maxBytes: MAX_IMAGE_BYTES }, signal));
    const image = { type: 'image', data: bytes.toString('base64'), mimeType: kind.mimeType } as const;
    return {
      structured: { ...noText, kind: 'image' },
      text: `${path}: ${kind.mimeType}, ${size} bytes`,
      more: [image],
    };
  }
  if (!kind.isText) {
    const note = `${path} is no text: ${kind.mimeType}, ${size} bytes. sandbox_download_file gets its bytes.`;
    return {
      structured: { ...noText, kind: 'binary' },
      text: note,
      more: [linkOf(context, input, path, size, kind.mimeType)],
    };
  }
  const { offset, limit } = input;
  const lines = await readLines(files.readStream(path, signal), {
    offset: offset ?? 1,
    limit: limit ?? Number.MAX_SAFE_INTEGER,
  });
  return {
    structured: {
      ...about,
      kind: 'text',
      first_line: lines.firstLine,
      last_line: lines.lastLine,
      has_more: lines.hasMore,
    },
    text: lines.text,
    more: lines.hasMore
      ? [{ type: 'text', text: readOn(lines) }, linkOf(context, input, path, size, kind.mimeType)]
      : [],
  };
}

function readOn({ lastLine, isCut }: { readonly lastLine: number | null; readonly isCut: boolean }): string {
  if (isCut)
    return `[line ${lastLine} is longer than can be shown; look at parts of it with sandbox_run_command, for example cut or grep -o]`;
  return `[the file goes on; read on with offset ${(lastLine ?? 0) + 1}]`;
}

async function editFile(
  files: ChannelFiles,
  path: string,
  input: WorkToolInput<'sandbox_edit_file'>,
  context: ToolContext,
): Promise<ToolAnswer<WorkToolOutput<'sandbox_edit_file'>>> {
  const { signal } = context;
  await requireFile(files, path, signal);
  const bytes = await files.readFile(path, { maxBytes: MAX_EDITED_BYTES }, signal);
  const edited = editText(path, decode(path, bytes), {
    oldText: input.old_text,
    newText: input.new_text,
    isEvery: input.replace_all ?? false,
  });
  const content = Buffer.from(edited.text);
  await files.writeFile(path, content, {}, signal);
  return {
    structured: {
      path,
      replacements: edited.lines.length,
      lines: [...edited.lines],
      size_bytes: content.length,
      uri: uriOf(context, input, path),
    },
    text: `${path}: replaced at line ${edited.lines.join(', ')}`,
  };
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    const message = `${path} is no text in UTF-8; change it with a program, or replace it with sandbox_upload_file`;
    throw new PlatformError('invalid_request', message, { details: { field: 'path' }, cause: error });
  }
}

async function listFiles(
  files: ChannelFiles,
  path: string,
  { offset, limit }: WorkToolInput<'sandbox_list_files'>,
  { signal }: ToolContext,
): Promise<ToolAnswer<WorkToolOutput<'sandbox_list_files'>>> {
  const all = (await Array.fromAsync(files.readDirectory(path, signal))).map(toEntry);
  const first = offset ?? 0;
  const entries = all
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .slice(first, first + (limit ?? DEFAULT_LISTED));
  const hasMore = first + entries.length < all.length;
  const lines = entries.map(
    ({ name, kind, size_bytes: size }) => `${name}${kind === 'directory' ? '/' : ''}\t${kind}\t${size}`,
  );
  const note = hasMore ? [`[${all.length} entries; read on with offset ${first + entries.length}]`] : [];
  return {
    structured: { path, entries, total: all.length, has_more: hasMore },
    text: [path, ...lines, ...note].join('\n'),
  };
}

const KINDS = { file: 'file', dir: 'directory', symlink: 'symlink', other: 'other' } as const;

function toEntry({ path, kind, size, mode, modifiedSeconds }: FileEntry) {
  return {
    name: posix.basename(path),
    kind: KINDS[kind],
    size_bytes: size,
    mode: (mode & PERMISSIONS).toString(8).padStart(4, '0'),
    modified_at: modifiedSeconds === null ? null : new Date(modifiedSeconds * 1000).toISOString(),
  };
}

async function upload(
  files: ChannelFiles,
  path: string,
  { data, append }: WorkToolInput<'sandbox_upload_file'>,
  signal: AbortSignal,
): Promise<void> {
  if (data.length % 4 !== 0) {
    const reason = 'must be base64 with its padding';
    throw new PlatformError('invalid_request', `Invalid params: data ${reason}`, {
      details: { field: 'data', reason },
    });
  }
  const bytes = Buffer.from(data, 'base64');
  await files.mkdir(posix.dirname(path), {}, signal);
  if (append !== true) return await files.writeFile(path, bytes, {}, signal);
  const handle = await files.open(path, { write: true, create: true }, signal);
  try {
    const { size } = await files.fstat(handle, signal);
    await files.write(handle, size, once(bytes), signal);
  } catch (error) {
    files.release(handle);
    throw error;
  }
  await files.closeHandle(handle, signal);
}

async function download(
  files: ChannelFiles,
  path: string,
  input: WorkToolInput<'sandbox_download_file'>,
  context: ToolContext,
): Promise<ToolAnswer<WorkToolOutput<'sandbox_download_file'>>> {
  const { signal } = context;
  const { size } = await requireFile(files, path, signal);
  const { mimeType } = kindOf(path, await beginning(files, path, signal));
  const first = input.offset ?? 0;
  const bytes =
    input.include_data === true
      ? await piece(files, path, { offset: first, length: input.length ?? DEFAULT_PIECE_BYTES }, signal)
      : undefined;
  const next = first + (bytes?.length ?? 0);
  return {
    structured: {
      path,
      size_bytes: size,
      mime_type: mimeType,
      uri: uriOf(context, input, path),
      data: bytes?.toString('base64') ?? null,
      next_offset: bytes !== undefined && next < size ? next : null,
    },
    text: `${path}: ${mimeType}, ${size} bytes`,
    more: [linkOf(context, input, path, size, mimeType)],
  };
}

async function requireFile(files: ChannelFiles, path: string, signal: AbortSignal): Promise<FileEntry> {
  const entry = await files.stat(path, {}, signal);
  if (entry.kind !== 'dir') return entry;
  const message = `${path} is a folder; see what is in it with sandbox_list_files`;
  throw new PlatformError('invalid_request', message, { details: { field: 'path' } });
}

async function beginning(files: ChannelFiles, path: string, signal: AbortSignal): Promise<Uint8Array> {
  return await piece(files, path, { offset: 0, length: SNIFFED_BYTES }, signal);
}

async function piece(
  files: ChannelFiles,
  path: string,
  { offset, length }: { readonly offset: number; readonly length: number },
  signal: AbortSignal,
): Promise<Buffer> {
  const handle = await files.open(path, { read: true }, signal);
  try {
    return Buffer.concat(await files.read(handle, offset, length, signal));
  } finally {
    files.release(handle);
  }
}

async function written(
  files: ChannelFiles,
  path: string,
  input: { readonly sandbox: string },
  context: ToolContext,
): Promise<ToolAnswer<WorkToolOutput<'sandbox_write_file'>>> {
  const { size } = await files.stat(path, {}, context.signal);
  return {
    structured: { path, size_bytes: size, uri: uriOf(context, input, path) },
    text: `${path} has ${size} bytes now`,
  };
}

function uriOf({ namespace }: ToolContext, { sandbox }: { readonly sandbox: string }, path: string): string {
  return fileUri({ namespace, sandbox, path });
}

export function linkOf(
  context: ToolContext,
  input: { readonly sandbox: string },
  path: string,
  size: number,
  mimeType: string,
): ContentBlock {
  return {
    type: 'resource_link',
    uri: uriOf(context, input, path),
    name: posix.basename(path),
    title: `${path} in ${input.sandbox}`,
    mimeType,
    size,
  };
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}
