import { posix } from 'node:path';
import type { ChannelFiles } from '@svc/contract';
import type { ChannelWatch, WatchEvent } from '@svc/contract/channel';
import { boundedBy } from '../../../processes/explain-failure.ts';
import { pathFor } from './accounts.ts';
import { ConnectError } from '../wire/connect-error.ts';
import { toEntryInfo } from './entry-info.ts';
import type { EnvdCall } from './envd-call.ts';
import { find } from './filesystem.ts';
import type { FilesystemEvent } from '../wire/filesystem-event.ts';
import { booleanIn, textIn, type Message } from './message-fields.ts';

const TYPE = {
  created: 'EVENT_TYPE_CREATE',
  modified: 'EVENT_TYPE_WRITE',
  removed: 'EVENT_TYPE_REMOVE',
  attributes: 'EVENT_TYPE_CHMOD',
} as const;
const RENAME = 'EVENT_TYPE_RENAME';

/** Begins to watch the folder of a request over this connection. */
export async function startWatch(
  call: EnvdCall,
  files: ChannelFiles,
  message: Message,
): Promise<ChannelWatch> {
  const path = pathFor(await call.account(), textIn(message, 'path'));
  const entry = await find(files, path, call.signal);
  if (entry === undefined) throw new ConnectError('not_found', `path ${path} not found`);
  if (entry.kind !== 'dir') throw new ConnectError('invalid_argument', `path ${path} not a directory`);
  return await files.watch(path, { recursive: booleanIn(message, 'recursive') }, boundedBy(call.signal));
}

/** @throws ConnectError when changes were missed, which E2B has no event for */
export async function* filesystemEvents(
  call: EnvdCall,
  watch: ChannelWatch,
  message: Message,
): AsyncGenerator<FilesystemEvent, void> {
  const withEntry = booleanIn(message, 'includeEntry');
  for await (const event of watch.events()) {
    for (const { name, type } of toEvents(event)) {
      const isThere =
        withEntry && (type === TYPE.created || type === TYPE.modified || type === TYPE.attributes);
      const entry = isThere ? await entryOf(call, posix.join(watch.path, name)) : undefined;
      yield { name, type, ...(entry === undefined ? {} : { entry }) };
    }
  }
}

function toEvents(event: WatchEvent): readonly FilesystemEvent[] {
  if (event.type === 'overflow')
    throw new ConnectError(
      'internal',
      'changes were missed because there were too many at once; list the folder',
    );
  if (event.type !== 'renamed') return [{ name: event.path, type: TYPE[event.type] }];
  return [
    { name: event.from, type: RENAME },
    { name: event.path, type: TYPE.created },
  ];
}

async function entryOf(call: EnvdCall, path: string): Promise<object | undefined> {
  const files = await call.files();
  const entry = await find(files, path, call.signal, { followSymlink: false });
  return entry && (await toEntryInfo(files, await call.accounts(), { ...entry, path }, call.signal));
}
