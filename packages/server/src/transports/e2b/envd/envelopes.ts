import { ConnectError } from '../wire/connect-error.ts';

/** Flags and length before each message of a stream. */
const HEAD_BYTES = 5;
const COMPRESSED = 1;
const END = 2;

/** The bytes of one message of a stream. */
export function encodeEnvelope(message: unknown, flags: 0 | typeof END = 0): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

/** The last message: it carries the failure, because the status was sent before. */
export function encodeEnd(failure: Pick<ConnectError, 'code' | 'message'> | null): Buffer {
  const { code, message } = failure ?? {};
  return encodeEnvelope(failure === null ? {} : { error: { code, message } }, END);
}

/** The messages of a stream from a client, however its bytes are cut. @throws ConnectError `invalid_argument` */
export async function* readEnvelopes(
  bytes: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Readonly<Record<string, unknown>>, void> {
  let held = Buffer.alloc(0);
  for await (const chunk of bytes) {
    held = held.length === 0 ? Buffer.from(chunk) : Buffer.concat([held, chunk]);
    for (let length = lengthOf(held, maxBytes); held.length >= HEAD_BYTES + length;) {
      const isEnd = (held.readUInt8(0) & END) !== 0;
      const body = held.subarray(HEAD_BYTES, HEAD_BYTES + length);
      held = held.subarray(HEAD_BYTES + length);
      if (isEnd) return;
      yield readObject(body);
      length = lengthOf(held, maxBytes);
    }
  }
  if (held.length > 0) throw new ConnectError('invalid_argument', 'the stream ended within a message');
}

/** Infinity while the head of the next message is not there. */
function lengthOf(held: Buffer, maxBytes: number): number {
  if (held.length < HEAD_BYTES) return Number.POSITIVE_INFINITY;
  const flags = held.readUInt8(0);
  if ((flags & ~(COMPRESSED | END)) !== 0)
    throw new ConnectError('invalid_argument', `a message has flags ${flags}, which mean nothing`);
  if ((flags & COMPRESSED) !== 0)
    throw new ConnectError('unimplemented', 'compressed messages are not taken; send identity');
  const length = held.readUInt32BE(1);
  if (length > maxBytes)
    throw new ConnectError('resource_exhausted', `a message has ${length} bytes; ${maxBytes} are taken`);
  return length;
}

/** @throws ConnectError `invalid_argument` */
export function readObject(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // Reported below, like other values that are no objects.
  }
  throw new ConnectError('invalid_argument', 'a message must be a JSON object');
}
