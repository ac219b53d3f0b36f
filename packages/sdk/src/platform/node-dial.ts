import { createHash, randomBytes } from 'node:crypto';
import { errorOfAnswer, SvcError } from '../svc-error.ts';
import { connectTo, takeDialled, targetOf } from './dial-ahead.ts';
import type { SocketChunks } from './socket-chunks.ts';
import { NodeTransport } from './node-transport.ts';
import type { DialRequest, DialledTransport } from './platform.ts';

const MAX_ANSWER_BYTES = 64 * 1024;
/** The GUID of RFC 6455, section 1.3. */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/**
 * A WebSocket client. Node's global one has no back-pressure and does not say why it was refused.
 */
export async function dialNode(request: DialRequest): Promise<DialledTransport> {
  request.signal.throwIfAborted();
  const url = new URL(request.url);
  const target = targetOf(url);
  const dialled = takeDialled(target);
  if (dialled !== undefined) {
    try {
      return await upgrade(dialled, url, request);
    } catch (error) {
      // The server may have closed the connection as it was taken.
      if (!(error instanceof SvcError) || error.code !== 'connection_failed') throw error;
      request.signal.throwIfAborted();
    }
  }
  return await upgrade(connectTo(target), url, request);
}

async function upgrade(
  chunks: SocketChunks,
  target: URL,
  { apiKey, signal }: DialRequest,
): Promise<DialledTransport> {
  const abort = (): void => void chunks.socket.destroy(signal.reason as SvcError);
  signal.addEventListener('abort', abort);
  try {
    const key = randomBytes(16).toString('base64');
    chunks.socket.write(encodeUpgrade(target, key, apiKey));
    const answer = await readHead(chunks);
    if (answer.status !== 101) throw await refusal(answer, chunks);
    requireAccept(answer, key);
    return new NodeTransport(chunks, answer.rest);
  } catch (error) {
    chunks.socket.destroy();
    if (error instanceof SvcError) throw error;
    const reason = error instanceof Error ? `: ${error.message}` : '';
    const message = `The server at ${target.host} cannot be reached${reason}`;
    throw new SvcError('connection_failed', message, { cause: error });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** SAFETY: a credential with other characters could add headers of its own. */
function encodeUpgrade(target: URL, key: string, apiKey: string | undefined): string {
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new SvcError('invalid_api_key', 'The API key has characters that no key has');
  }
  return [
    `GET ${target.pathname}${target.search} HTTP/1.1`,
    `Host: ${target.host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
    'User-Agent: svc-sdk/0.1.0',
    ...(apiKey === undefined ? [] : [`Authorization: Bearer ${apiKey}`]),
    '\r\n',
  ].join('\r\n');
}

interface Answer {
  readonly status: number;
  /** Parses headers without `Headers`, which would load all of fetch. */
  readonly headers: Pick<Headers, 'get'>;
  /** Bytes that followed the head. */
  readonly rest: Uint8Array;
}

async function readHead(chunks: SocketChunks): Promise<Answer> {
  let bytes = Buffer.alloc(0);
  for (;;) {
    const chunk = await chunks.read();
    if (chunk === undefined) throw new Error('the connection was closed without an answer');
    bytes = Buffer.concat([bytes, chunk]);
    const end = bytes.indexOf('\r\n\r\n');
    if (end >= 0) {
      const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1]);
      const pairs = lines.map((line) => /^([^:\s]+):\s*(.*?)\s*$/.exec(line)?.slice(1) ?? []);
      const headers = new Map(pairs.map(([name = '', value = '']) => [name.toLowerCase(), value]));
      const get = (name: string) => headers.get(name) ?? null;
      return { status, headers: { get }, rest: new Uint8Array(bytes.subarray(end + 4)) };
    }
    if (bytes.length > MAX_ANSWER_BYTES) throw new Error('the answer has no end');
  }
}

/** The body is one JSON object, so its braces tell where it is even when it comes in HTTP chunks. */
async function refusal({ status, headers, rest }: Answer, chunks: SocketChunks): Promise<SvcError> {
  const length = Number(headers.get('content-length') ?? MAX_ANSWER_BYTES);
  let body = Buffer.from(rest);
  while (body.length < Math.min(length, MAX_ANSWER_BYTES)) {
    const chunk = await chunks.read();
    if (chunk === undefined) break;
    body = Buffer.concat([body, chunk]);
  }
  const text = body.toString('utf8');
  return errorOfAnswer(status, headers, text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
}

function requireAccept({ headers }: Answer, key: string): void {
  const expected = createHash('sha1').update(`${key}${ACCEPT_SUFFIX}`).digest('base64');
  if (headers.get('sec-websocket-accept') !== expected) throw new Error('the answer is none to our upgrade');
}
