import type { ChannelClient, ChannelWatch, WatchEvent } from '@svc/contract/channel';
import { callOptionsOf, CallBudget, type CallOptions } from '../client/call-budget.ts';
import { SvcError } from '../svc-error.ts';
import { toSvcError } from '../client/to-svc-error.ts';
import { withRetries } from '../client/with-retries.ts';
import type { SharedChannel } from './shared-channel.ts';

export interface WatchOptions extends CallOptions {
  /** Watches directories below it too, also new ones; symbolic links are not followed. */
  readonly recursive?: boolean;
}

/**
 * A change. `path` is relative to the watched path, which itself is `''`. `kind` is `file` for anything but a directory. A
 * change of a directory applies to its whole content, for which there are no events of their own.
 * - `renamed`: within the watched path; a move into or out of it is `created` or `removed`.
 * - `overflow`: changes before this one may be missing, because they came faster than they were read or because the
 *   connection broke. List again.
 */
export type FileChange =
  | {
      readonly type: 'created' | 'modified' | 'removed' | 'attributes';
      readonly path: string;
      readonly kind: 'file' | 'directory';
    }
  | {
      readonly type: 'renamed';
      readonly path: string;
      readonly from: string;
      readonly kind: 'file' | 'directory';
    }
  | { readonly type: 'overflow' };

/** Enough for a restart of the server. */
const MAX_RECONNECTS = 6;

/**
 * The changes of a file or directory from now on, over a connection of their own; iterate once. The iteration ends after
 * `close`, and when what is watched was removed, moved or unmounted, which a `removed` of `''` tells. When the connection
 * breaks it is opened again, and an `overflow` tells so.
 */
export class FileWatch implements AsyncIterable<FileChange>, AsyncDisposable {
  readonly #held: SharedChannel;
  readonly #path: string;
  readonly #recursive: boolean;
  readonly #budget: CallBudget;
  readonly #closing = new AbortController();
  #channel: ChannelClient | undefined;
  #watch: ChannelWatch | undefined;

  private constructor(held: SharedChannel, path: string, options: WatchOptions) {
    this.#held = held;
    this.#path = path;
    this.#recursive = options.recursive ?? false;
    const call = callOptionsOf(options, { recursive: true });
    const { signal } = this.#closing;
    this.#budget = new CallBudget({
      ...call,
      signal: options.signal === undefined ? signal : AbortSignal.any([options.signal, signal]),
    });
    this.#budget.signal.addEventListener('abort', () => this.#channel?.close());
  }

  /** For `files.watch`. */
  static async start(held: SharedChannel, path: string, options: WatchOptions): Promise<FileWatch> {
    const watch = new FileWatch(held, path, options);
    try {
      await watch.#open();
      watch.#budget.stopClock();
      return watch;
    } catch (error) {
      watch.#budget.end();
      throw watch.#budget.explain(error);
    }
  }

  /** The watched path, with symbolic links resolved. */
  get path(): string {
    return this.#watch?.path ?? this.#path;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FileChange, void> {
    try {
      while (this.#watch !== undefined) {
        try {
          for await (const event of this.#watch.events()) yield toChange(event);
          return;
        } catch (error) {
          this.#budget.check();
          // Every failure but a broken connection is thrown.
          if (!SvcError.is(toSvcError(error), 'connection_failed')) throw error;
        }
        await withRetries(this.#budget, MAX_RECONNECTS, () => this.#open());
        yield { type: 'overflow' };
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) throw this.#budget.explain(error);
    } finally {
      this.close();
    }
  }

  /** Ends the iteration at once; changes that have arrived already are dropped. */
  close(): void {
    this.#closing.abort();
    this.#budget.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #open(): Promise<void> {
    const { signal } = this.#budget;
    const channel = await this.#held.openOwn({ signal });
    this.#channel = channel;
    try {
      this.#watch = await channel.files.watch(this.#path, { recursive: this.#recursive }, signal);
    } catch (error) {
      channel.close();
      throw error;
    }
  }
}

function toChange(event: WatchEvent): FileChange {
  if (event.type === 'overflow') return event;
  return { ...event, kind: event.kind === 'dir' ? 'directory' : 'file' };
}
