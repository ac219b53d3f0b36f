import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { TestContext } from 'node:test';
import { ChannelClient } from '@svc/contract';
import type { ByteTransport } from '@svc/contract/channel';
import { WebSocket } from 'ws';

export interface ChannelAddress {
  /** Of the server. */
  readonly url: string;
  readonly sandboxId: string;
  readonly key?: string;
  /** Path prefix of the sandbox: `/orgs/x`. */
  readonly prefix?: string;
  /** Path behind the sandbox; its command channel unless given. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocols?: readonly string[];
  /** Does not answer pings. */
  readonly isSilent?: boolean;
}

/** A WebSocket to a sandbox's channel; it is closed after the test. */
export async function openWebSocket(
  t: Pick<TestContext, 'after'>,
  address: ChannelAddress,
  hear: (data: Buffer) => void = () => undefined,
): Promise<WebSocket> {
  const socket = connect(address);
  // Registered before it opens: some servers send first.
  socket.on('message', hear);
  t.after(() => socket.terminate());
  socket.on('error', () => undefined);
  await once(socket, 'open');
  return socket;
}

export interface Refusal {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: {
    readonly error: { readonly code: string; readonly details: Readonly<Record<string, unknown>> | null };
  };
}

/** The HTTP answer of a channel that is refused. */
export async function refusalOf(address: ChannelAddress): Promise<Refusal> {
  const socket = connect(address);
  const opened = once(socket, 'open').then(() => Promise.reject(new Error('the channel was opened')));
  const refused = once(socket, 'unexpected-response') as Promise<[unknown, IncomingMessage]>;
  socket.on('error', () => undefined);
  const [, response] = await Promise.race([refused, opened]);
  opened.catch(() => undefined);
  const text = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString();
  return {
    status: response.statusCode ?? 0,
    body: JSON.parse(text) as Refusal['body'],
    headers: response.headers,
  };
}

export async function openChannel(
  t: Pick<TestContext, 'after'>,
  address: ChannelAddress,
): Promise<{ readonly channel: ChannelClient; readonly socket: WebSocket }> {
  const socket = connect(address);
  t.after(() => socket.terminate());
  // Registered before it opens: the greeting comes at once.
  const transport = webSocketTransport(socket);
  await once(socket, 'open');
  return { channel: await ChannelClient.connect(transport), socket };
}

/** Rejects when it was closed before the call, because the reason is lost then. */
export async function closeOf(
  socket: WebSocket,
): Promise<{ readonly code: number; readonly reason: string }> {
  if (socket.readyState === socket.CLOSED) throw new Error('the WebSocket was closed before');
  const { promise, resolve } = Promise.withResolvers<{ readonly code: number; readonly reason: string }>();
  // Not `once` of events, which rejects on an error before the close.
  socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  return await promise;
}

function connect(address: ChannelAddress): WebSocket {
  const { url, sandboxId, key, prefix = '', path = 'agent', headers = {} } = address;
  const { protocols = [], isSilent = false } = address;
  const target = `${url.replace(/^http/, 'ws')}/v1${prefix}/sandboxes/${sandboxId}/${path}`;
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const socket = new WebSocket(target, [...protocols], {
    headers: { ...authorization, ...headers },
    perMessageDeflate: false,
    autoPong: !isSilent,
  });
  socket.binaryType = 'nodebuffer';
  return socket;
}

function webSocketTransport(socket: WebSocket): ByteTransport {
  return {
    readable: readAll(socket),
    write: (bytes) =>
      new Promise((resolve, reject) => {
        socket.send(bytes, (error) => (error ? reject(error) : resolve()));
      }),
    close: () => socket.terminate(),
  };
}

function readAll(socket: WebSocket): AsyncIterable<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let isOver = false;
  let wake: () => void = () => undefined;
  socket.on('message', (data: Buffer) => {
    chunks.push(data);
    socket.pause();
    wake();
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    isOver = true;
    wake();
  });
  return (async function* read() {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        if (chunks.length === 0 && socket.isPaused) socket.resume();
      } else if (isOver) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  })();
}
