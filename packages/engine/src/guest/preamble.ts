import type { Socket } from 'node:net';

const PREAMBLE_BYTES = 41;
const PREAMBLE_TIMEOUT_MS = 5_000;

export interface Preamble {
  readonly kind: 'control' | 'session';
  readonly connection: number;
  readonly token: Buffer;
}

/** Reads the 41 bytes with which svc-init opens each connection and leaves the socket paused behind them. The socket must be unread. */
export function readPreamble(socket: Socket): Promise<Preamble> {
  const { promise, resolve, reject } = Promise.withResolvers<Preamble>();
  const fail = () => settle(() => reject(new Error('no preamble')));
  const timer = setTimeout(fail, PREAMBLE_TIMEOUT_MS);
  const settle = (act: () => void) => {
    clearTimeout(timer);
    socket.off('readable', onReadable);
    socket.off('close', fail);
    act();
  };
  const onReadable = () => {
    const bytes: Buffer | null = socket.read(PREAMBLE_BYTES);
    if (bytes === null) return;
    const preamble = parsePreamble(bytes);
    settle(() => (preamble === undefined ? reject(new Error('not a preamble')) : resolve(preamble)));
  };
  socket.on('readable', onReadable);
  socket.once('close', fail);
  return promise;
}

export function parsePreamble(bytes: Buffer): Preamble | undefined {
  const kind = { C: 'control', S: 'session' } as const;
  const letter = bytes.toString('latin1', 4, 5);
  if (bytes.length !== PREAMBLE_BYTES || bytes.toString('latin1', 0, 4) !== 'SVC1') return undefined;
  if (letter !== 'C' && letter !== 'S') return undefined;
  return { kind: kind[letter], connection: bytes.readUInt32BE(5), token: Buffer.from(bytes.subarray(9)) };
}
