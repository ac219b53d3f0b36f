import { posix } from 'node:path';
import { PlatformError } from '@svc/contract';
import type { FileInfo as FileView } from '@svc/contract/rest';
import { FairLimit } from '../../access/fair-limit.ts';
import { followUpload } from '../../dispatch/follow-upload.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import type { RecordedEvent, RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { GuestFiles, type FileInfo, type FilePlace } from '../../files/guest-files.ts';
import type { FileContent } from '../../files/open-content.ts';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { Database } from '../../store/database.ts';
import { findOpenRun } from '../../store/processes.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';
import { workdirOf } from './sandbox-files.ts';

type FileHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `files.${string}`>>;

const LIST = 'files';
const OCTAL = 8;
/** Reads and writes at once, over all organizations; each holds some megabytes. */
const MAX_TRANSFERS = 256;

export interface FileParts {
  readonly database: Database;
  readonly channels: ChannelPool;
}

export function fileHandlers(parts: FileParts): FileHandlers {
  const files = new GuestFiles(parts.channels);
  return { ...readHandlers(parts, files, new FairLimit(MAX_TRANSFERS)), ...changeHandlers(parts, files) };
}

function readHandlers(
  parts: FileParts,
  files: GuestFiles,
  transfers: FairLimit,
): Pick<FileHandlers, `files.${'list' | 'stat' | 'read' | 'write'}`> {
  return {
    'files.list': async ({ params, query }, call) => {
      const page = readPage(query, LIST, 1);
      const place = await placeOf(parts, call, params, query.path);
      const { depth = 1 } = query;
      const after = page.after === null ? undefined : String(page.after[0]);
      const found = await files.list(place, { depth, limit: page.limit + 1, after }, call.signal);
      return toPage(found, page, LIST, ({ path }) => [posix.relative(place.path, path)], toView);
    },
    'files.stat': async ({ params, query }, call) =>
      toView(await files.stat(await placeOf(parts, call, params, query.path), call.signal)),
    'files.read': async ({ params, query, headers }, call) => {
      const place = await placeOf(parts, call, params, query.path);
      // Files have no validator that is strong enough to be compared with.
      const range = headers['if-range'] === undefined ? headers.range : undefined;
      const leave = transfers.enter(ownerOf(call));
      // The signal aborts when the answer has ended, in whatever way.
      call.signal.addEventListener('abort', leave, { once: true });
      try {
        const content = await files.read(place, { range }, call.signal);
        describeContent(call, content);
        return content.content;
      } catch (error) {
        leave();
        if (PlatformError.is(error, 'range_not_satisfiable'))
          call.setHeader('content-range', `bytes */${String(error.details?.['size'])}`);
        throw error;
      }
    },
    'files.write': async ({ params, query, body }, call) => {
      const { owner, parents } = query;
      const place = await placeOf(parts, call, params, query.path);
      const leave = transfers.enter(ownerOf(call));
      try {
        const upload = followUpload(body);
        const options = { owner, parents, mode: modeOf(query.mode) };
        const info = await files
          .write(place, upload.content, options, call.signal)
          // A broken body also ends the write in the sandbox; the body's error is the cause.
          .catch((error: unknown) => Promise.reject(upload.failure() ?? error));
        const payload = { sandbox_id: place.sandboxId, path: place.path, bytes: info.size };
        return await answer(call, { type: 'file_written', category: 'file', payload }, toView(info));
      } finally {
        leave();
      }
    },
  };
}

function changeHandlers(
  parts: FileParts,
  files: GuestFiles,
): Pick<FileHandlers, `files.${'makeFolder' | 'move' | 'remove' | 'change'}`> {
  return {
    'files.makeFolder': async ({ params, body }, call) => {
      const place = await placeOf(parts, call, params, body.path);
      const { owner, parents } = body;
      const options = { owner, parents, mode: modeOf(body.mode) };
      const info = await files.makeFolder(place, options, call.signal);
      return await answer(
        call,
        { type: 'folder_created', category: 'file', payload: toPayload(place) },
        toView(info),
      );
    },
    'files.move': async ({ params, body }, call) => {
      const { sandboxId, path: from } = await placeOf(parts, call, params, body.from);
      const { path: to } = await placeOf(parts, call, params, body.to);
      const { overwrite, parents } = body;
      const info = await files.move({ sandboxId, path: from }, to, { overwrite, parents }, call.signal);
      const payload = { sandbox_id: sandboxId, from, to };
      return await answer(call, { type: 'file_moved', category: 'file', payload }, toView(info));
    },
    'files.remove': async ({ params, query }, call) => {
      const place = await placeOf(parts, call, params, query.path);
      const { recursive = false } = query;
      if (place.path === '/') throw badField('path', 'must not be the root of the sandbox');
      await files.remove(place, { recursive }, call.signal);
      const payload = { ...toPayload(place), recursive };
      return await answer(call, { type: 'file_removed', category: 'file', payload }, { ok: true });
    },
    'files.change': async ({ params, body }, call) => {
      const { owner, mode } = body;
      if (owner === undefined && mode === undefined) throw badField('body', 'must have owner or mode');
      const place = await placeOf(parts, call, params, body.path);
      const info = await files.change(place, { owner, mode: modeOf(mode) }, call.signal);
      const payload = { ...toPayload(place), owner: owner ?? null, mode: mode ?? null };
      return await answer(call, { type: 'file_changed', category: 'file', payload }, toView(info));
    },
  };
}

/** A place in a sandbox of the caller's that runs. */
async function placeOf(
  { database }: FileParts,
  call: RestCall,
  params: { readonly sandbox_id: string },
  path: string,
): Promise<FilePlace> {
  if (path.includes('\0')) throw badField('path', 'must not contain NUL');
  const sandbox = await requireSandbox(database, call, { id: params.sandbox_id });
  if ((await findOpenRun(database, sandbox.id)) === undefined) {
    const message = `Sandbox '${sandbox.name}' is ${sandbox.observed}; start it first`;
    throw new PlatformError('sandbox_not_running', message, { details: { state: sandbox.observed } });
  }
  return { sandboxId: sandbox.id, path: posix.resolve(workdirOf(sandbox), path) };
}

async function answer<View>(call: RestCall, event: RecordedEvent, view: View): Promise<View> {
  await call.note(event);
  return view;
}

function ownerOf({ isOperator, organization }: RestCall): string | null {
  return isOperator ? null : organization.slug;
}

function toPayload({ sandboxId, path }: FilePlace) {
  return { sandbox_id: sandboxId, path };
}

function modeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number.parseInt(text, OCTAL);
}

function describeContent(call: RestCall, { start, end, isPartial, totalBytes }: FileContent): void {
  call.setHeader('accept-ranges', 'bytes');
  if (end !== null) call.setHeader('content-length', String(end - start));
  if (isPartial) call.setHeader('content-range', `bytes ${start}-${Number(end) - 1}/${totalBytes}`);
}

const KINDS = { file: 'file', dir: 'directory', symlink: 'symlink', other: 'other' } as const;

function toView({ path, kind, size, mode, uid, gid, owner, group, modifiedAt, link }: FileInfo): FileView {
  return {
    path,
    name: posix.basename(path),
    kind: KINDS[kind],
    size,
    mode: mode.toString(OCTAL).padStart(4, '0'),
    uid,
    gid,
    owner,
    group,
    modified_at: modifiedAt,
    target: link?.target ?? null,
  };
}
