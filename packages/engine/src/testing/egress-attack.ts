import { connect as connectHttp2, constants, type OutgoingHttpHeaders } from 'node:http2';
import type { TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { makeWorld, secret, type World, type WorldOptions } from './https-world.ts';

/** By default a secret is for api.test only. */
export async function open(t: TestContext, options: WorldOptions): Promise<World> {
  const world = await makeWorld({ secrets: [secret()], ...options });
  t.after(() => world[Symbol.asyncDispose]());
  return world;
}

/** The response until the connection ends, or is silent for a while after an answer. */
export async function raw(world: World, servername: string, message: string): Promise<string> {
  const socket = await world.connect(servername);
  socket.on('error', () => undefined);
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk));
  socket.write(message);
  await waitUntil(
    () => socket.destroyed || socket.readableEnded || /\r\n\r\n(fine|4\r\nfine\r\n0\r\n\r\n)/.test(answer),
  );
  socket.destroy();
  return answer;
}

export async function overHttp2(
  world: World,
  host: string,
  headers: OutgoingHttpHeaders,
  frames: readonly string[] = [],
  trailers: OutgoingHttpHeaders | null = null,
): Promise<number | 'reset'> {
  const socket = await world.connect(host, ['h2']);
  const session = connectHttp2(`https://${host}:${world.serverPort}`, { createConnection: () => socket });
  session.on('error', () => undefined);
  const stream = session.request(headers, {
    endStream: frames.length === 0,
    waitForTrailers: trailers !== null,
  });
  stream.once('wantTrailers', () => stream.sendTrailers(trailers ?? {}));
  stream.on('error', () => undefined).resume();
  const answered = new Promise<number | 'reset'>((resolve) => {
    stream.once('response', (answer) => resolve(answer[':status'] ?? 0));
    stream.once('close', () => resolve(stream.rstCode === constants.NGHTTP2_NO_ERROR ? 0 : 'reset'));
  });
  for (const frame of frames) {
    stream.write(frame);
    await new Promise(setImmediate);
  }
  if (frames.length > 0) stream.end();
  const outcome = await answered;
  session.destroy();
  return outcome;
}
