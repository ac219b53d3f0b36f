import type { Message, Payload } from '../frames/frame.ts';
import { abortable } from '../async/abort.ts';
import { ChannelError, FileFailed } from './channel-error.ts';
import type { Connection, Session } from './connection.ts';
import { EventQueue } from './event-queue.ts';
import { own, readArray, readMessage, readOptionalMessage, readRecord, readText } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

const CHANGES = ['created', 'modified', 'removed', 'attributes'] as const;

/** Paths are relative to the watched path, "" is that path itself; `file` is anything but a folder. */
export type WatchEvent =
  | {
      readonly type: (typeof CHANGES)[number];
      readonly path: string;
      readonly kind: 'file' | 'dir';
    }
  | { readonly type: 'renamed'; readonly path: string; readonly kind: 'file' | 'dir'; readonly from: string }
  /** Some changes were not reported: list the folder to see them. */
  | { readonly type: 'overflow' };

/**
 * A path of a sandbox that is watched. With 256 KiB of events unread the whole connection waits for their reader, so use one
 * of its own; the sandbox then leaves out what does not fit and tells so by `overflow`.
 */
export class ChannelWatch {
  readonly #connection: Connection;
  readonly #id: number;
  readonly #session: WatchSession;
  /** The watched path, with symbolic links resolved. */
  readonly path: string;

  private constructor(connection: Connection, id: number, session: WatchSession, path: string) {
    this.#connection = connection;
    this.#id = id;
    this.#session = session;
    this.path = path;
  }

  static async start(
    connection: Connection,
    path: string,
    recursive: boolean,
    signal: AbortSignal | undefined,
  ): Promise<ChannelWatch> {
    signal?.throwIfAborted();
    const session = new WatchSession();
    const id = connection.start(session);
    try {
      await abortable(connection.send(id, 'svc.watch.start', { path, recursive }), signal);
      return new ChannelWatch(connection, id, session, await abortable(session.started, signal));
    } catch (error) {
      connection.post(id, 'svc.watch.stop', {});
      connection.abandon(id);
      throw error;
    }
  }

  /** Ends after `stop`, or after `removed` of "" when the watched path is gone. Iterate once. */
  events(): AsyncGenerator<WatchEvent, void> {
    return this.#session.events.read();
  }

  stop(): void {
    this.#session.events.finish();
    this.#connection.post(this.#id, 'svc.watch.stop', {});
    this.#connection.abandon(this.#id);
  }
}

class WatchSession implements Session {
  readonly events = new EventQueue<WatchEvent>(sizeOf);
  readonly #started = Promise.withResolvers<string>();

  constructor() {
    // The connection may end before anyone waits.
    this.#started.promise.catch(() => undefined);
  }

  /** The path that is watched. */
  get started(): Promise<string> {
    return this.#started.promise;
  }

  receive(message: Message): Promise<void> | undefined {
    const { type, payload } = message;
    if (type === 'svc.watch.started') this.#started.resolve(readText(payload, 'path'));
    if (type === 'svc.watch.events') {
      return this.events.push(readArray(own(payload, 'events'), 'events').map(readEvent));
    }
    if (type === 'svc.watch.failed') this.#fail(failureOf(payload));
    if (type === 'core.error') this.#fail(refusal(message));
    if (type === 'svc.watch.end') this.events.finish();
    return undefined;
  }

  lost(error: ChannelError): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    this.#started.reject(error);
    this.events.finish(error);
  }
}

function sizeOf(event: WatchEvent): number {
  if (event.type === 'overflow') return 0;
  return event.path.length + (event.type === 'renamed' ? event.from.length : 0);
}

function failureOf(payload: Payload): FileFailed {
  return new FileFailed(readMessage(payload, 'message'), readOptionalMessage(payload, 'errno_name'));
}

function readEvent(value: unknown): WatchEvent {
  const event = readRecord(value, 'event');
  const type = readText(event, 'type');
  if (type === 'overflow') return { type };
  const path = readText(event, 'path');
  const kind = own(event, 'kind') === 'dir' ? 'dir' : 'file';
  if (type === 'renamed') return { type, path, kind, from: readText(event, 'from') };
  const change = CHANGES.find((known) => known === type);
  if (change !== undefined) return { type: change, path, kind };
  throw new ChannelError('protocol', 'The sandbox reported a change of an unknown type');
}
