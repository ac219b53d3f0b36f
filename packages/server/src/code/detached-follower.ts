import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, type ChannelClient, type DetachedState, type ProcessExit } from '@svc/contract';

/** How long to retry while a sandbox cannot be reached; a restart of the engine takes less. */
const RECONNECT_TIMEOUT_MS = 60_000;
const RETRY_MS = 50;
const OPEN_MS = 10_000;

/** `lost`: the reason could not be found out. */
export type InterpreterEnd =
  | { readonly kind: 'exited'; readonly exit: ProcessExit }
  | { readonly kind: 'lost' };

interface ProcessHandle {
  readonly key: string;
  readonly reopen: (signal: AbortSignal) => Promise<ChannelClient>;
}

interface Readers {
  stdout(data: Uint8Array): void;
  stderr(data: Uint8Array): void;
  /** Called when bytes of the stream were dropped before they were read. */
  skipped(stream: 'stdout' | 'stderr'): void;
  /** Called after a reconnect: what was sent over the connection before may not have arrived. */
  reopened(): void;
}

/** Reads the output of a detached process until it ends, each byte once, and reconnects as often as that takes. */
export class DetachedFollower {
  readonly #handle: ProcessHandle;
  readonly #readers: Readers;
  readonly #next: { stdout: number; stderr: number };
  readonly #closing = new AbortController();
  channel: ChannelClient;
  readonly ended: Promise<InterpreterEnd>;

  constructor(
    handle: ProcessHandle,
    channel: ChannelClient,
    from: { readonly stdout: number; readonly stderr: number },
    readers: Readers,
  ) {
    this.#handle = handle;
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
    const { key } = this.#handle;
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

  /** False: the process cannot be reached any more, or the follower was stopped. */
  async #reopen(): Promise<boolean> {
    const { signal } = this.#closing;
    const deadline = Date.now() + RECONNECT_TIMEOUT_MS;
    while (!signal.aborted && Date.now() < deadline) {
      try {
        this.channel = await this.#handle.reopen(AbortSignal.any([signal, AbortSignal.timeout(OPEN_MS)]));
        if (signal.aborted) this.channel.close();
        return !signal.aborted;
      } catch {
        // An engine that is away cannot be distinguished from one that is still finding its sandboxes again.
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    return false;
  }
}

/** The sandbox does not know the process: its record was dropped, or the sandbox was restarted. */
function isGone(error: unknown): boolean {
  return error instanceof ChannelError && error.kind === 'refused';
}

function toExit({ code, signal, reason }: NonNullable<DetachedState['end']>): ProcessExit {
  if (reason === 'oom') return { code: -1, signal, reason };
  return signal === null
    ? { code: code ?? 0, signal, reason: 'exit' }
    : { code: -1, signal, reason: 'signal' };
}
