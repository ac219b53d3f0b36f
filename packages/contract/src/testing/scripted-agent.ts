import { FrameSplitter } from '../frames/frame-splitter.ts';
import { decodeMessage, encodeMessage } from '../frames/frame.ts';
import type { Message, Payload } from '../frames/frame.ts';
import { ByteQueue } from '../channel/byte-queue.ts';
import { ChannelClient } from '../channel/channel-client.ts';
import type { ByteTransport } from '../channel/transport.ts';

/** A scripted agent for tests of the channel: sends the messages, or the raw bytes, that the test gives it. */
export class ScriptedAgent {
  readonly transport: ByteTransport;
  readonly received: Message[] = [];
  writes = 0;
  readonly #toClient = new ByteQueue(Number.POSITIVE_INFINITY);
  readonly #splitter = new FrameSplitter();
  readonly #answer: (message: Message, agent: ScriptedAgent) => void;
  isClosed = false;
  /** Simulates a peer that stopped reading with full buffers: writes never resolve. */
  isStuck = false;

  constructor(answer: (message: Message, agent: ScriptedAgent) => void = () => undefined) {
    this.#answer = answer;
    this.transport = {
      readable: lend(this.#toClient),
      write: async (bytes) => {
        this.writes += 1;
        this.#take(bytes);
        if (this.isStuck) await new Promise(() => undefined);
      },
      close: () => {
        this.isClosed = true;
        this.#toClient.end();
      },
    };
  }

  /** An agent that has said hello, and its client. */
  static async connect(
    answer?: (message: Message, agent: ScriptedAgent) => void,
  ): Promise<{ agent: ScriptedAgent; client: ChannelClient }> {
    const agent = new ScriptedAgent(answer);
    agent.sendBytes(HELLO);
    return { agent, client: await ChannelClient.connect(agent.transport) };
  }

  send(id: number, type: string, payload: Payload = {}): void {
    this.sendBytes(encodeMessage(id, type, payload));
  }

  sendBytes(bytes: Uint8Array): void {
    void this.#toClient.push(bytes);
  }

  hangUp(error?: Error): void {
    this.#toClient.end(error);
  }

  #take(bytes: Uint8Array): void {
    if (this.isClosed) throw new Error('the pipe is closed');
    for (const frame of this.#splitter.push(bytes)) {
      const message = decodeMessage(frame);
      this.received.push(message);
      this.#answer(message, this);
    }
  }
}

/** Overwrites the memory of a chunk once the next one is asked for, as transports may. */
async function* lend(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    const lent = new Uint8Array(chunk);
    yield lent;
    lent.fill(0xee);
  }
}

export const READY = {
  boot_time_ns: 1,
  init_time_ns: 2,
  ready_time_ns: 3,
  agent_version: 'test',
  features: ['svc.watch'],
};
/** The range [1, 0xffffffff). */
export const RANGE = Uint8Array.of(0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff);
export const HELLO = Uint8Array.of(...RANGE, ...encodeMessage(0, 'core.ready', READY));
