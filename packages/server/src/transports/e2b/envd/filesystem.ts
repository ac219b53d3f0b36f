import { PlatformError } from '@svc/contract';
import type { FilePlace } from '../../../files/guest-files.ts';
import { ConnectError } from '../wire/connect-error.ts';
import { noteFile } from '../wire/note-file.ts';
import { pathFor, type Account } from './accounts.ts';
import { toEntryInfo } from './entry-info.ts';
import type { EnvdCall } from './envd-call.ts';
import { textIn, wholeIn, type Message } from './message-fields.ts';

/** Entries of one answer, which is made in memory. */
const MAX_ENTRIES = 50_000;

export async function stat(call: EnvdCall, message: Message): Promise<object> {
  const place = placeIn(call, await call.account(), textIn(message, 'path'));
  return { entry: toEntryInfo(await call.parts.files.stat(place, call.signal)) };
}

export async function listDir(call: EnvdCall, message: Message): Promise<object> {
  const place = placeIn(call, await call.account(), textIn(message, 'path'));
  const walk = { depth: Math.max(1, wholeIn(message, 'depth')), limit: MAX_ENTRIES + 1 };
  const found = await call.parts.files.list(place, walk, call.signal);
  if (found.length <= MAX_ENTRIES) return { entries: found.map(toEntryInfo) };
  const remedy = `${place.path} has more than ${MAX_ENTRIES} entries; list parts of it`;
  throw new ConnectError('resource_exhausted', remedy);
}

export async function makeDir(call: EnvdCall, message: Message): Promise<object> {
  const account = await call.account();
  const place = placeIn(call, account, textIn(message, 'path'));
  const made = await call.parts.files
    .makeFolder(place, { owner: idsOf(account), parents: true }, call.signal)
    .catch((error: unknown) => explainTaken(call, place, error));
  await noteFile(call.parts, call.of, { type: 'folder_created', path: place.path });
  return { entry: toEntryInfo(made) };
}

/** What is at the destination is replaced. */
export async function move(call: EnvdCall, message: Message): Promise<object> {
  const account = await call.account();
  const from = placeIn(call, account, textIn(message, 'source'));
  const to = pathFor(account, textIn(message, 'destination'));
  const options = { owner: idsOf(account), parents: true, overwrite: true };
  const moved = await call.parts.files.move(from, to, options, call.signal);
  await noteFile(call.parts, call.of, { type: 'file_moved', from: from.path, to });
  return { entry: toEntryInfo(moved) };
}

/** A path that is not there counts as removed. */
export async function remove(call: EnvdCall, message: Message): Promise<object> {
  const place = placeIn(call, await call.account(), textIn(message, 'path'));
  try {
    await call.parts.files.remove(place, { recursive: true }, call.signal);
  } catch (error) {
    if (PlatformError.is(error, 'not_found')) return {};
    throw error;
  }
  await noteFile(call.parts, call.of, { type: 'file_removed', path: place.path, recursive: true });
  return {};
}

function placeIn({ sandboxId }: EnvdCall, account: Account, path: string): FilePlace {
  return { sandboxId, path: pathFor(account, path) };
}

export function idsOf({ uid, gid }: Account) {
  return { uid, gid };
}

/** A folder that is there, also behind a link, is no failure to E2B's clients. */
async function explainTaken({ parts, signal }: EnvdCall, place: FilePlace, error: unknown): Promise<never> {
  if (!PlatformError.is(error, 'name_already_exists')) throw error;
  const { kind, link } = await parts.files.stat(place, signal);
  if (kind === 'dir' || link?.kind === 'dir')
    throw new ConnectError('already_exists', `directory already exists: ${place.path}`);
  const message = `path already exists but it is not a directory: ${place.path}`;
  throw new ConnectError('invalid_argument', message);
}
