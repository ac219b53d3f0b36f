import {
  shellCodeOf,
  type ChannelClient,
  type ChannelProcess,
  type ProcessExit,
} from '@svc/contract/channel';
import { toSvcError } from '../client/to-svc-error.ts';
import { OutputStream } from './output-stream.ts';
import { signalNumber, type Signal } from './signals.ts';

const encoder = new TextEncoder();

/** How a command ended: `code` is -1 when a signal ended it. */
export interface CommandExit extends ProcessExit {
  /** As a shell gives it: the code, or 128 + n when signal n ended the command. */
  readonly shellCode: number;
}

/**
 * A process that runs, over a connection of its own. It ends when that is closed: by `kill`, at the end of an `await using`,
 * or with this program.
 */
export class Command implements AsyncDisposable {
  readonly #channel: ChannelClient;
  readonly #process: ChannelProcess;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;

  constructor(channel: ChannelClient, process: ChannelProcess) {
    this.#channel = channel;
    this.#process = process;
    this.stdout = new OutputStream(process.stdout);
    this.stderr = new OutputStream(process.stderr);
    process.exited.then(
      () => channel.close(),
      () => channel.close(),
    );
  }

  /** In the sandbox. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Resolves when more can be written. Writing to a process that has ended does nothing. */
  async write(data: string | Uint8Array): Promise<void> {
    // The connection takes over its buffer, and the caller may reuse the bytes.
    const bytes = typeof data === 'string' ? encoder.encode(data) : data;
    await called(this.#process.writeStdin(bytes));
  }

  /** The process reads the end of its input. */
  async closeStdin(): Promise<void> {
    await called(this.#process.closeStdin());
  }

  /** To the process and all that it started. */
  async signal(signal: Signal): Promise<void> {
    await called(this.#process.signal(signalNumber(signal)));
  }

  /** The process and all that it started, in sessions of their own too. */
  async kill(): Promise<void> {
    await called(this.#process.kill(true));
  }

  /** Of a terminal. */
  async resize(size: { readonly cols: number; readonly rows: number }): Promise<void> {
    await called(this.#process.resize(size.rows, size.cols));
  }

  /** All output has come before it resolves, so read or discard both streams meanwhile. @throws SvcError */
  async wait(): Promise<CommandExit> {
    const exit = await called(this.#process.exited);
    return { ...exit, shellCode: shellCodeOf(exit) };
  }

  /** Ends the process if it still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#channel.close();
    await this.#process.exited.catch(() => undefined);
  }
}

async function called<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw toSvcError(error);
  }
}
