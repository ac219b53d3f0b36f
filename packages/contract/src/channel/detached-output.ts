import type { Message } from '../frames/frame.ts';
import { ChannelError } from './channel-error.ts';
import type { Session } from './connection.ts';
import { readDetachedState, type DetachedState } from './detached-state.ts';
import { readBytes, readText, readUint } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

/** Unread output that is held before the whole connection waits for the reader. */
const HELD_LIMIT_BYTES = 256 * 1024;
/** What every held event costs beside its bytes, so that a flood of tiny ones is bounded too. */
const EVENT_OVERHEAD_BYTES = 64;

export type OutputStream = 'stdout' | 'stderr';

/** What a read of a detached process gives, in order. Each stream goes on where its last event ended; `end` comes last. */
export type DetachedEvent =
  | {
      readonly type: 'output';
      readonly stream: OutputStream;
      readonly offset: number;
      readonly data: Uint8Array;
    }
  /** These bytes were kept no longer. */
  | { readonly type: 'dropped'; readonly stream: OutputStream; readonly from: number; readonly to: number }
  | { readonly type: 'end'; readonly state: DetachedState };

/** The answers to one read, between the connection, which pushes, and one consumer, which iterates once. */
export class DetachedOutput implements Session {
  readonly #events: DetachedEvent[] = [];
  #heldBytes = 0;
  #isOver = false;
  #error: Error | undefined;
  #wakeReader: (() => void) | undefined;
  #room: PromiseWithResolvers<void> | undefined;

  receive(message: Message): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    if (message.type === 'core.error') return this.#finish(refusal(message));
    const event = readEvent(message);
    if (event === undefined) return undefined;
    this.#events.push(event);
    this.#heldBytes += costOf(event);
    if (event.type === 'end') return this.#finish(undefined);
    this.#wake();
    if (this.#heldBytes <= HELD_LIMIT_BYTES) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  lost(error: ChannelError): void {
    this.#finish(error);
  }

  /** What came is still read; then the iteration ends, or throws the error. */
  #finish(error: Error | undefined): undefined {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#wake();
    this.#makeRoom();
  }

  async *read(): AsyncGenerator<DetachedEvent, void> {
    try {
      for (;;) {
        const event = this.#events.shift();
        if (event !== undefined) {
          this.#heldBytes -= costOf(event);
          if (this.#heldBytes <= HELD_LIMIT_BYTES / 2) this.#makeRoom();
          yield event;
        } else if (this.#error) {
          throw this.#error;
        } else if (this.#isOver) {
          return;
        } else {
          const waiting = Promise.withResolvers<void>();
          this.#wakeReader = waiting.resolve;
          await waiting.promise;
        }
      }
    } finally {
      this.#events.length = 0;
      this.#finish(undefined);
    }
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }
}

function costOf(event: DetachedEvent): number {
  return EVENT_OVERHEAD_BYTES + (event.type === 'output' ? event.data.length : 0);
}

function readEvent({ type, payload }: Message): DetachedEvent | undefined {
  switch (type) {
    case 'svc.detached.output': {
      const [stream, offset] = [readStream(payload), readUint(payload, 'offset')];
      // Copied: the transport lends its memory for a moment only.
      return { type: 'output', stream, offset, data: readBytes(payload, 'data').slice() };
    }
    case 'svc.detached.dropped':
      return {
        type: 'dropped',
        stream: readStream(payload),
        from: readUint(payload, 'from'),
        to: readUint(payload, 'to'),
      };
    case 'svc.detached.end':
      return { type: 'end', state: readDetachedState(payload) };
    default:
      return undefined;
  }
}

function readStream(payload: Message['payload']): OutputStream {
  const stream = readText(payload, 'stream');
  if (stream === 'stdout' || stream === 'stderr') return stream;
  throw new ChannelError('protocol', 'The sandbox sent output of a stream that does not exist');
}
