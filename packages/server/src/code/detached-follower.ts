import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, type ChannelClient, type DetachedState, type ProcessExit } from '@svc/contract';

/** How long a sandbox is waited for that cannot be reached: an engine is back sooner. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 50;
const OPEN_MS = 10_000;

/** `lost`: how it ended could not be found out. */
export type InterpreterEnd =
  | { readonly kind: 'exited'; readonly exit: ProcessExit }
  | { readonly kind: 'lost' };

interface Seat {
  readonly key: string;
  readonly reopen: (signal: AbortSignal) => Promise<ChannelClient>;
}

interface Readers {
  stdout(data: Uint8Array): void;
  stderr(data: Uint8Array): void;
  /** Bytes of the stream were kept no longer when it came to them. */
  skipped(stream: 'stdout' | 'stderr'): void;
  /** What was sent over the connection before may not have arrived. */
  reopened(): void;
}

/** Reads what a detached process prints until it ends, each byte once, over as many connections as that takes. */
export class DetachedFollower {
  readonly #seat: Seat;
  readonly #readers: Readers;
  readonly #next: { stdout: number; stderr: number };
  readonly #closing = new AbortController();
  channel: ChannelClient;
  readonly ended: Promise<InterpreterEnd>;

  constructor(
    seat: Seat,
    channel: ChannelClient,
    from: { readonly stdout: number; readonly stderr: number },
    readers: Readers,
  ) {
    this.#seat = seat;
    this.#readers = readers;
    this.channel = channel;
    this.#next = { ...from };
    this.ended = this.#follow().finally(() => this.channel.close());
  }

  close(): void {
    this.#closing.abort();
    this.channel.close();
  }

  async #follow(): Promise<InterpreterEnd> {
    for (;;) {
      const state = await this.#read().catch((error: unknown) => (isGone(error) ? 'gone' : undefined));
      if (state === 'gone') return { kind: 'lost' };
      if (state?.end) return { kind: 'exited', exit: toExit(state.end) };
      this.channel.close();
      if (!(await this.#reopen())) return { kind: 'lost' };
      this.#readers.reopened();
    }
  }

  async #read(): Promise<DetachedState | undefined> {
    const { key } = this.#seat;
    for await (const event of this.channel.detached.read(key, { ...this.#next, follow: true })) {
      if (event.type === 'end') return event.state;
      if (event.type === 'dropped') {
        this.#next[event.stream] = event.to;
        this.#readers.skipped(event.stream);
      } else {
        this.#next[event.stream] = event.offset + event.data.length;
        this.#readers[event.stream](event.data);
      }
    }
    return undefined;
  }

  /** False: it cannot be had any more, or nobody wants it. */
  async #reopen(): Promise<boolean> {
    const { signal } = this.#closing;
    const deadline = Date.now() + PATIENCE_MS;
    while (!signal.aborted && Date.now() < deadline) {
      try {
        this.channel = await this.#seat.reopen(AbortSignal.any([signal, AbortSignal.timeout(OPEN_MS)]));
        if (signal.aborted) this.channel.close();
        return !signal.aborted;
      } catch {
        // An engine that is away, and one that is finding its sandboxes again, cannot be told from one without it.
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    return false;
  }
}

/** The sandbox does not know the process: it was forgotten, or the sandbox was started anew. */
function isGone(error: unknown): boolean {
  return error instanceof ChannelError && error.kind === 'refused';
}

function toExit({ code, signal, reason }: NonNullable<DetachedState['end']>): ProcessExit {
  if (reason === 'oom') return { code: -1, signal, reason };
  return signal === null
    ? { code: code ?? 0, signal, reason: 'exit' }
    : { code: -1, signal, reason: 'signal' };
}
