import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

const MAX_EVENTS = 256;
const MAX_BYTES = 4 * 1024 * 1024;

interface Event {
  readonly number: number;
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
}

/**
 * Keeps the latest messages of one session for clients that reconnect. Drops the oldest beyond a number and a size; a
 * client that asks for dropped messages gets the remaining ones.
 */
export class EventLog implements EventStore {
  #events: Event[] = [];
  #bytes = 0;
  #lastNumber = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    this.#lastNumber += 1;
    const bytes = JSON.stringify(message).length;
    this.#events.push({ number: this.#lastNumber, streamId, message, bytes });
    this.#bytes += bytes;
    while (this.#events.length > MAX_EVENTS || (this.#bytes > MAX_BYTES && this.#events.length > 1)) {
      this.#bytes -= this.#events.shift()?.bytes ?? 0;
    }
    return await Promise.resolve(idOf(streamId, this.#lastNumber));
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return await Promise.resolve(readId(eventId)?.streamId);
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const last = readId(lastEventId);
    if (last === undefined) throw new Error('no such event');
    const missed = this.#events.filter(
      ({ streamId, number }) => streamId === last.streamId && number > last.number,
    );
    // A priming event has an empty message; it only gives the client an id for reconnecting.
    for (const { number, message } of missed) {
      if ('jsonrpc' in message) await send(idOf(last.streamId, number), message);
    }
    return last.streamId;
  }
}

function idOf(streamId: string, number: number): string {
  return `${streamId}_${number}`;
}

function readId(eventId: string): { streamId: string; number: number } | undefined {
  const match = /^(.+)_(\d{1,15})$/.exec(eventId);
  return match === null ? undefined : { streamId: match[1] ?? '', number: Number(match[2]) };
}
