/**
 * The byte pipe under a channel: a socket, a WebSocket, a pair of streams.
 * - `readable` yields what the peer sent, in order, and ends when the peer has ended or after `close`; it throws when the
 *   pipe broke. Until the reader asks for the next chunk the transport stops reading, so that the peer waits.
 *   A chunk is valid until the next one is asked for: the transport may then read into the same memory, so a reader that
 *   keeps bytes must copy them.
 * - `write` keeps the order of calls and resolves when the pipe can take more; it rejects when the pipe broke.
 *   The bytes belong to the transport from the call on.
 * - `close` drops the pipe at once and may be repeated.
 */
export interface ByteTransport {
  readonly readable: AsyncIterable<Uint8Array>;
  write(bytes: Uint8Array): Promise<void>;
  close(): void;
}
