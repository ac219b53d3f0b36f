import { posix } from 'node:path';
import { readPage, toPage } from '../../dispatch/paging.ts';
import type { RecordedEvent, RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { GuestFiles, type FilePlace } from '../../files/guest-files.ts';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import { modeOf, ownerOf, placeOf, toView } from './file-place.ts';
import { FileTransfers } from './file-transfers.ts';
import { linkHandlers, type LinkParts } from './link-handlers.ts';

type FileHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `files.${string}`>>;

const LIST = 'files';

export interface FileParts extends LinkParts {
  readonly channels: ChannelPool;
}

export function fileHandlers(parts: FileParts): FileHandlers {
  const files = new GuestFiles(parts.channels);
  const transfers = new FileTransfers(files);
  return {
    ...readHandlers(parts, files, transfers),
    ...changeHandlers(parts, files),
    ...linkHandlers(parts, transfers),
  };
}

function readHandlers(
  parts: FileParts,
  files: GuestFiles,
  transfers: FileTransfers,
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
      return await transfers.read(ownerOf(call), place, headers, call);
    },
    'files.write': async ({ params, query, body }, call) => {
      const { owner, parents, metadata } = query;
      const place = await placeOf(parts, call, params, query.path);
      const options = { body, owner, parents, metadata, mode: modeOf(query.mode) };
      const info = await transfers.write(ownerOf(call), place, options, call);
      const payload = { ...toPayload(place), bytes: info.size };
      return await answer(call, { type: 'file_written', category: 'file', payload }, toView(info));
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
      await files.remove(place, { recursive }, call.signal);
      const payload = { ...toPayload(place), recursive };
      return await answer(call, { type: 'file_removed', category: 'file', payload }, { ok: true });
    },
    'files.change': async ({ params, body }, call) => {
      const { owner, mode, metadata } = body;
      if (owner === undefined && mode === undefined && metadata === undefined)
        throw badField('body', 'must have owner, mode or metadata');
      const place = await placeOf(parts, call, params, body.path);
      const info = await files.change(place, { owner, mode: modeOf(mode), metadata }, call.signal);
      const payload = {
        ...toPayload(place),
        owner: owner ?? null,
        mode: mode ?? null,
        metadata: metadata ?? null,
      };
      return await answer(call, { type: 'file_changed', category: 'file', payload }, toView(info));
    },
  };
}

async function answer<View>(call: RestCall, event: RecordedEvent, view: View): Promise<View> {
  await call.note(event);
  return view;
}

function toPayload({ sandboxId, path }: FilePlace) {
  return { sandbox_id: sandboxId, path };
}
