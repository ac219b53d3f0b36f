import type { Message } from '../frames/frame.ts';
import { ChannelError } from './channel-error.ts';
import type { Session } from './connection.ts';
import { readDetachedState, type DetachedState } from './detached-state.ts';
import { EventQueue } from './event-queue.ts';
import { readBytes, readText, readUint } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

export type OutputStream = 'stdout' | 'stderr';

/** The events of a read from a detached process, in order. Each stream continues where its last event ended; `end` comes last. */
export type DetachedEvent =
  | {
      readonly type: 'output';
      readonly stream: OutputStream;
      readonly offset: number;
      readonly data: Uint8Array;
    }
  /** These bytes are no longer kept. */
  | { readonly type: 'dropped'; readonly stream: OutputStream; readonly from: number; readonly to: number }
  | { readonly type: 'end'; readonly state: DetachedState };

/** The answers to one read; iterate once. */
export class DetachedOutput implements Session {
  readonly #events = new EventQueue<DetachedEvent>((event) =>
    event.type === 'output' ? event.data.length : 0,
  );

  receive(message: Message): Promise<void> | undefined {
    if (message.type === 'core.error') return this.#events.finish(refusal(message));
    const event = readEvent(message);
    if (event === undefined) return undefined;
    const hold = this.#events.push([event]);
    return event.type === 'end' ? this.#events.finish() : hold;
  }

  lost(error: ChannelError): void {
    this.#events.finish(error);
  }

  read(): AsyncGenerator<DetachedEvent, void> {
    return this.#events.read();
  }
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
