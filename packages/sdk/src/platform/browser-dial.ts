import { SvcError } from '../svc-error.ts';
import { errorOfClose } from './error-of-close.ts';
import type { DialRequest, DialledTransport } from './platform.ts';

/** Unread bytes after which the connection is closed: a browser cannot make its peer wait. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** Unsent bytes after which a write waits. */
const MAX_UNSENT_BYTES = 1024 * 1024;
const POLL_MS = 4;
const CLOSE_NORMAL = 1000;

/** A WebSocket of the browser, which sends the credential as a protocol because it cannot set headers. */
export async function dialBrowser(request: DialRequest): Promise<DialledTransport> {
  const { url, apiKey, signal, describeRefusal } = request;
  signal.throwIfAborted();
  const socket = new WebSocket(url, [
    'svc.channel',
    ...(apiKey === undefined ? [] : [`svc.bearer.${apiKey}`]),
  ]);
  const transport = new BrowserTransport(socket);
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const abort = (): void => reject(signal.reason as SvcError);
  signal.addEventListener('abort', abort);
  socket.addEventListener('open', () => resolve(true));
  socket.addEventListener('close', () => resolve(false));
  try {
    if (await promise) return transport;
  } catch (error) {
    transport.close();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
  throw (await describeRefusal()) ?? new SvcError('connection_failed', 'The channel could not be opened');
}

class BrowserTransport implements DialledTransport {
  readonly readable: AsyncIterable<Uint8Array>;
  readonly #socket: WebSocket;
  readonly #chunks: Uint8Array[] = [];
  #unreadBytes = 0;
  #end: { readonly error?: Error } | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    // Listens from the beginning, because the sandbox sends first.
    socket.addEventListener('message', ({ data }) => this.#take(data));
    socket.addEventListener('close', ({ code, reason }) =>
      this.#finish(code === CLOSE_NORMAL ? {} : { error: errorOfClose(code, reason) }),
    );
    this.readable = this.#read();
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#requireOpen();
    // oxlint-disable-next-line typescript/no-unnecessary-type-assertion -- The types of browsers ask for it, those of Node do not.
    this.#socket.send(bytes as Uint8Array<ArrayBuffer>);
    // There is no event for it.
    while (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) {
      await new Promise((resolve) => void setTimeout(resolve, POLL_MS));
      this.#requireOpen();
    }
  }

  close(): void {
    this.#finish({});
    this.#socket.close();
  }

  setInUse(): void {
    // Open connections do not keep a page from ending.
  }

  async *#read(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#unreadBytes -= chunk.length;
        yield chunk;
      } else if (this.#end?.error) {
        throw this.#end.error;
      } else if (this.#end) {
        return;
      } else {
        const waiting = Promise.withResolvers<void>();
        this.#wake = waiting.resolve;
        await waiting.promise;
      }
    }
  }

  /** Text carries nothing in this protocol. */
  #take(data: unknown): void {
    if (!(data instanceof ArrayBuffer) || this.#end) return;
    this.#chunks.push(new Uint8Array(data));
    this.#unreadBytes += data.byteLength;
    this.#wake?.();
    if (this.#unreadBytes <= MAX_UNREAD_BYTES) return;
    this.#finish({ error: new Error('The output was not read fast enough; a browser cannot hold it up') });
    this.#socket.close();
  }

  #finish(end: { readonly error?: Error }): void {
    this.#end ??= end;
    this.#wake?.();
  }

  #requireOpen(): void {
    if (this.#end) throw this.#end.error ?? new Error('The channel is closed');
  }
}
