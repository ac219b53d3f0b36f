import { utf8Decoder } from '../client/utf8.ts';

type Stream = 'stdout' | 'stderr';

interface Listeners {
  readonly onStdout?: ((text: string) => void) | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
}

/** Passes the output of a process on as text. A character that is split between two pieces is passed on with the second. */
export class OutputListeners {
  readonly #listeners: Readonly<Record<Stream, ((text: string) => void) | undefined>>;
  readonly #decoders: Readonly<Record<Stream, ReturnType<typeof utf8Decoder>>> = {
    stdout: utf8Decoder(),
    stderr: utf8Decoder(),
  };
  /** The error that a listener threw. */
  failure: unknown;

  constructor({ onStdout, onStderr }: Listeners) {
    this.#listeners = { stdout: onStdout, stderr: onStderr };
  }

  get isEmpty(): boolean {
    return this.#listeners.stdout === undefined && this.#listeners.stderr === undefined;
  }

  /** `data` null: the stream has ended. */
  readonly hear = (stream: Stream, data: Uint8Array | null): void => {
    const decoder = this.#decoders[stream];
    const text = data === null ? decoder.decode() : decoder.decode(data, { stream: true });
    if (text === '') return;
    try {
      this.#listeners[stream]?.(text);
    } catch (error) {
      this.failure = error;
      throw error;
    }
  };
}
