/** Runs inside a sandbox's network namespace; see probe.ts. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { LengthFrames, frame } from '../egress/length-frames.ts';
import { encodeQuery } from './dns-samples.ts';
import type { Attempt } from './probe.ts';

const attempts = JSON.parse(process.argv[2] ?? '[]') as Attempt[];
const TIMEOUT_MS = Number(process.argv[3]);
/** Extra connections would have been answered within this time. */
const MORE_MS = 1500;

const outcomes = await Promise.all(attempts.map((attempt) => attemptOne(attempt).catch(describe)));
process.stdout.write(JSON.stringify(outcomes), () => process.exit(0));

async function attemptOne(attempt: Attempt): Promise<string> {
  if (attempt.kind === 'tcp') return tcp(attempt.host, attempt.port);
  if (attempt.kind === 'udp') return send(attempt.host, attempt.port, attempt.text, attempt.from);
  if (attempt.kind === 'dns') {
    const ask = attempt.transport === 'udp' ? askUdp : askTcp;
    return readable(
      await ask(attempt.server, attempt.port ?? 53, encodeQuery(attempt.name, { type: attempt.type ?? 1 })),
    );
  }
  if (attempt.kind === 'knock') return knock(attempt.flows);
  return attempt.kind === 'dnsFlood' ? floodUdp(attempt) : countAnswers(attempt);
}

async function knock(flows: Extract<Attempt, { kind: 'knock' }>['flows']): Promise<string> {
  const sockets = { udp4: createSocket('udp4'), udp6: createSocket('udp6') };
  for (const socket of Object.values(sockets)) socket.on('error', () => undefined);
  for (const { address, protocol, port } of flows) {
    const datagrams = sockets[typeOf(address)];
    if (protocol === 'udp') await new Promise((resolve) => datagrams.send('knock', port, address, resolve));
    else connect({ host: address, port }).on('error', () => undefined);
    // The first packet of a connection is sent during `connect`.
  }
  await delay(100);
  return 'sent';
}

/** All from one socket: the packet filter sees packets of one established flow. */
async function floodUdp(attempt: Extract<Attempt, { kind: 'dnsFlood' }>): Promise<string> {
  const socket = createSocket('udp4');
  socket.connect(53, attempt.server);
  await once(socket, 'connect');
  let answers = 0;
  const startedAt = performance.now();
  socket.on('message', () => (answers += 1));
  const query = encodeQuery('public.example');
  for (let sent = 1; sent <= attempt.count; sent += 1) {
    socket.send(query);
    // Slow enough that no queue on the way drops them.
    if (sent % 25 === 0) await delay(5);
  }
  await delay(MORE_MS);
  return `${answers} ${performance.now() - startedAt}`;
}

async function countAnswers(attempt: Extract<Attempt, { kind: 'tcpMany' }>): Promise<string> {
  let answered = 0;
  const enough = Promise.withResolvers<void>();
  for (let made = 0; made < attempt.count; made++) {
    tcp(attempt.host, attempt.port).then(
      () => ++answered >= attempt.awaited && enough.resolve(),
      () => undefined,
    );
  }
  await Promise.race([enough.promise, delay(TIMEOUT_MS)]);
  await delay(MORE_MS);
  return String(answered);
}

async function send(host: string, port: number, text: string, from?: string): Promise<string> {
  const socket = createSocket(typeOf(host));
  socket.bind(0, from);
  await once(socket, 'listening');
  await new Promise((resolve) => socket.send(text, port, host, resolve));
  return 'sent';
}

async function tcp(host: string, port: number): Promise<string> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const socket = connect({ host, port });
  const [data] = (await once(socket, 'data', { signal })) as [Buffer];
  return data.toString().trim();
}

async function askUdp(server: string, port: number, query: Buffer): Promise<Buffer> {
  const socket = createSocket(typeOf(server));
  socket.connect(port, server);
  await once(socket, 'connect');
  socket.send(query);
  const [answer] = (await once(socket, 'message', { signal: AbortSignal.timeout(TIMEOUT_MS) })) as [Buffer];
  return answer;
}

async function askTcp(server: string, port: number, query: Buffer): Promise<Buffer> {
  const socket = connect({ host: server, port });
  const frames = new LengthFrames(65_535);
  socket.write(frame(query));
  for (;;) {
    const [data] = (await once(socket, 'data', { signal: AbortSignal.timeout(TIMEOUT_MS) })) as [Buffer];
    const [answer] = frames.push(data) ?? [];
    if (answer !== undefined) return answer;
  }
}

function typeOf(address: string): 'udp4' | 'udp6' {
  return address.includes(':') ? 'udp6' : 'udp4';
}

function readable(answer: Buffer): string {
  const flags = answer.readUInt16BE(2);
  if ((flags & 0x0200) !== 0) return 'truncated';
  if ((flags & 0xf) !== 0) return `rcode ${flags & 0xf}`;
  return answer.subarray(-4).join('.');
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return error.name === 'AbortError' ? 'silence' : ((error as NodeJS.ErrnoException).code ?? error.message);
}
