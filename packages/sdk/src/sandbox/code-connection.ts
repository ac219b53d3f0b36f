import { abortable } from '@svc/contract/async';
import { SvcError, errorOfAnswer } from '../svc-error.ts';
import type { DialledTransport } from '../platform/platform.ts';

/** A longer line is a protocol error. */
const MAX_LINE_LENGTH = 16 * 1024 * 1024;

/** A run by the connection that it was asked for on, and its number there. */
export interface RunName {
  readonly connection: string;
  readonly id: number;
}

/** Receives the events of one run. */
export interface RunListener {
  /** Output, results, and the end. */
  onEvent(event: string, data: unknown): void;
  /** Nothing more will come: the run was refused, or the connection broke. */
  onLost(error: SvcError): void;
}

interface Line {
  readonly id?: number;
  readonly event?: string;
  readonly data?: unknown;
  readonly connection?: string;
}

/** A connection to the server over which code runs in a sandbox: messages of JSON. */
export class CodeConnection {
  readonly #transport: DialledTransport;
  readonly #runs = new Map<number, RunListener>();
  readonly #opened = Promise.withResolvers<string>();
  readonly #encoder = new TextEncoder();
  #name = '';
  #lastId = 0;
  #failure: SvcError | undefined;
  #isLeaving = false;
  #isClosed = false;
  readonly #ended = Promise.withResolvers<void>();

  private constructor(transport: DialledTransport) {
    this.#transport = transport;
    // A failure before `open` waits is no unhandled rejection.
    this.#opened.promise.catch(() => undefined);
    void this.#read();
  }

  /** Waits for the server's first word; the transport is closed when it does not come. @throws SvcError */
  static async open(transport: DialledTransport, signal: AbortSignal): Promise<CodeConnection> {
    const connection = new CodeConnection(transport);
    try {
      connection.#name = await abortable(connection.#opened.promise, signal);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** True after `close`. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when it can be used no longer. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Sends the code; `again` is the run, on a connection that broke, that this is. @throws SvcError */
  run(body: object, again: RunName | undefined, listener: RunListener): RunName {
    if (this.#failure !== undefined) throw this.#failure;
    this.#lastId += 1;
    const id = this.#lastId;
    this.#runs.set(id, listener);
    this.#transport.setInUse(true);
    this.#send({ id, run: body, ...(again === undefined ? {} : { again }) });
    return { connection: this.#name, id };
  }

  /** Interrupts the code of a run that the caller has left. */
  cancel({ id }: RunName): void {
    if (!this.#runs.has(id)) return;
    this.#end(id);
    this.#send({ id, cancel: true });
  }

  close(): void {
    this.#isClosed = true;
    this.#fail(new SvcError('connection_failed', 'The connection was closed'));
  }

  /** As soon as nothing runs over it. */
  closeWhenIdle(): void {
    this.#isLeaving = true;
    if (this.#runs.size === 0) this.close();
  }

  #send(message: object): void {
    // A failure ends the connection, which every run reports.
    this.#transport
      .write(this.#encoder.encode(JSON.stringify(message)))
      .catch((error: unknown) => this.#fail(broken(error)));
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let begun = '';
    try {
      for await (const chunk of this.#transport.readable) {
        const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
        begun += first;
        for (const other of others) {
          this.#take(JSON.parse(begun) as Line);
          begun = other;
        }
        if (begun.length > MAX_LINE_LENGTH)
          return this.#fail(new SvcError('internal', 'The server sent an endless line'));
      }
      return this.#fail(broken());
    } catch (error) {
      return this.#fail(broken(error));
    }
  }

  #take({ id, event, data, connection }: Line): void {
    if (connection !== undefined) return this.#opened.resolve(connection);
    const listener = id === undefined ? undefined : this.#runs.get(id);
    // The run was cancelled.
    if (id === undefined || event === undefined || listener === undefined) return undefined;
    if (event === 'refused' || event === 'end' || event === 'error') this.#end(id);
    return event === 'refused' ? listener.onLost(refusal(data)) : listener.onEvent(event, data);
  }

  #end(id: number): void {
    this.#runs.delete(id);
    if (this.#runs.size > 0) return;
    if (this.#isLeaving) this.close();
    else this.#transport.setInUse(false);
  }

  #fail(error: SvcError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#transport.close();
    this.#opened.reject(error);
    this.#ended.resolve();
    const runs = [...this.#runs.values()];
    this.#runs.clear();
    for (const listener of runs) listener.onLost(error);
  }
}

function broken(cause?: unknown): SvcError {
  const reason = cause instanceof Error && cause.message !== '' ? `: ${cause.message}` : '';
  return new SvcError('connection_failed', `The connection to the server broke${reason}`, { cause });
}

/** As the answer of a request that was refused. */
function refusal(data: unknown): SvcError {
  const { status, error } = data as {
    readonly status: number;
    readonly error: { readonly details: { readonly retry_after_seconds?: number } | null };
  };
  const seconds = error.details?.retry_after_seconds;
  const get = (name: string) => (name === 'retry-after' && seconds !== undefined ? String(seconds) : null);
  return errorOfAnswer(status, { get }, JSON.stringify({ error }));
}
