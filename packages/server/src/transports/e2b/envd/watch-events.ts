import { posix } from 'node:path';
import { PlatformError, type ChannelFiles } from '@svc/contract';
import { isPartialPath, type ChannelWatch, type WatchEvent } from '@svc/contract/channel';
import { boundedBy } from '../../../processes/explain-failure.ts';
import { pathFor } from './accounts.ts';
import { ConnectError } from '../wire/connect-error.ts';
import { toEntryInfo } from './entry-info.ts';
import type { EnvdCall } from './envd-call.ts';
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
  const { kind, link } = await call.parts.files.stat({ sandboxId: call.sandboxId, path }, call.signal);
  if ((link?.kind ?? kind) !== 'dir')
    throw new ConnectError('invalid_argument', `path ${path} not a directory`);
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
  if (event.type !== 'renamed')
    return isPartialPath(event.path) ? [] : [{ name: event.path, type: TYPE[event.type] }];
  // An upload that is complete, and may have replaced a file.
  if (isPartialPath(event.from))
    return [
      { name: event.path, type: TYPE.created },
      { name: event.path, type: TYPE.modified },
    ];
  return [
    { name: event.from, type: RENAME },
    { name: event.path, type: TYPE.created },
  ];
}

/** Undefined when it is gone again. */
async function entryOf({ parts, sandboxId, signal }: EnvdCall, path: string): Promise<object | undefined> {
  try {
    return toEntryInfo(await parts.files.stat({ sandboxId, path }, signal));
  } catch (error) {
    if (PlatformError.is(error, 'not_found')) return undefined;
    throw error;
  }
}
