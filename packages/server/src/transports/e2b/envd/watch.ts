import { CALLER_GONE } from '../../http/caller-gone.ts';
import { timedOut } from './process-events.ts';
import type { EnvdCall } from './envd-call.ts';
import { withKeepAlive } from './keep-alive.ts';
import { textIn, type Message } from './message-fields.ts';
import { closeAfter, openOwn } from './own-channel.ts';
import type { FilesystemEvent } from '../wire/filesystem-event.ts';
import { filesystemEvents, startWatch } from './watch-events.ts';

interface WatchMessage {
  readonly start?: object;
  readonly filesystem?: FilesystemEvent;
  readonly keepalive?: object;
}

/** Changes in a folder until the client goes, or its time is over. */
export async function* watchDir(call: EnvdCall, message: Message): AsyncGenerator<WatchMessage, void> {
  const own = await openOwn(call);
  using deadline = closeAfter(own, call.timeoutMs);
  try {
    const watch = await startWatch(call, own.channel.files, message);
    yield { start: {} };
    const events = filesystemEvents(call, watch, message);
    for await (const event of withKeepAlive<FilesystemEvent | null>(events, {
      everyMs: call.keepAliveMs,
      beat: null,
    }))
      yield event === null ? { keepalive: {} } : { filesystem: event };
  } catch (error) {
    throw deadline.isOver() ? timedOut() : error;
  } finally {
    own.close();
  }
}

export async function createWatcher(call: EnvdCall, message: Message): Promise<object> {
  // It outlives this request.
  const lasting = call.lasting(new AbortController().signal);
  const own = await openOwn(lasting);
  try {
    const watch = await startWatch(call, own.channel.files, message);
    const events = filesystemEvents(lasting, watch, message);
    const watcherId = call.parts.watchers.add(call.sandboxId, events, () => own.close());
    if (call.signal.aborted) {
      call.parts.watchers.remove(call.sandboxId, watcherId);
      throw CALLER_GONE;
    }
    return { watcherId };
  } catch (error) {
    own.close();
    throw error;
  }
}

export async function getWatcherEvents(call: EnvdCall, message: Message): Promise<object> {
  return await Promise.resolve({
    events: call.parts.watchers.take(call.sandboxId, textIn(message, 'watcherId')),
  });
}

export async function removeWatcher(call: EnvdCall, message: Message): Promise<object> {
  call.parts.watchers.remove(call.sandboxId, textIn(message, 'watcherId'));
  return await Promise.resolve({});
}
