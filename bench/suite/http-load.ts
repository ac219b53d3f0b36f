import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** The request that is repeated. */
export interface LoadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
  readonly authorization?: string;
}

export interface Load {
  readonly perSecond: number;
  /** Milliseconds of each request. */
  readonly times: readonly number[];
}

/** Keeps `connections` requests under way for the given time, over bare sockets, so that most of the CPU is left to the server. */
export async function measureLoad(
  url: string,
  request: LoadRequest,
  options: { readonly connections: number; readonly durationMs: number },
): Promise<Load> {
  const { hostname, port } = new URL(url);
  const text = render(request, `${hostname}:${port}`);
  const times: number[] = [];
  const sockets = await Promise.all(
    Array.from({ length: options.connections }, async () => {
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      return socket;
    }),
  );
  const begun = performance.now();
  // A busy machine may stall for the whole time, and zero answers give no rate.
  const first = Promise.withResolvers<void>();
  const onAnswer = (tookMs: number) => {
    times.push(tookMs);
    first.resolve();
  };
  for (const socket of sockets) drive(socket, text, onAnswer, first.reject);
  const over = new Promise((resolve) => void setTimeout(resolve, options.durationMs));
  try {
    await Promise.all([first.promise, over]);
    return { perSecond: (times.length * 1000) / (performance.now() - begun), times };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/** Sends the next request when the answer to the last one is whole. */
function drive(
  socket: Socket,
  text: string,
  onAnswer: (tookMs: number) => void,
  onFailure: (error: Error) => void,
): void {
  let received = '';
  let sentAt = performance.now();
  socket.setEncoding('latin1');
  socket.setNoDelay(true);
  socket.once('error', onFailure);
  socket.on('data', (chunk: string) => {
    received += chunk;
    const head = received.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1]);
    if (received.length < head + 4 + length) return;
    if (!received.startsWith('HTTP/1.1 200')) return onFailure(new Error(received));
    received = '';
    onAnswer(performance.now() - sentAt);
    sentAt = performance.now();
    socket.write(text);
  });
  socket.write(text);
}

function render({ method, path, body = '', authorization }: LoadRequest, host: string): string {
  const credential = authorization === undefined ? '' : `authorization: ${authorization}\r\n`;
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n${credential}`;
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
