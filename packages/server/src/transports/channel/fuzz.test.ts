import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { ChannelError, ExecFailed, FileFailed, PlatformError, type ChannelClient } from '@svc/contract';
import { decodeMessage, encodeMessage, FrameSplitter, type Payload } from '@svc/contract/frames';
import { waitUntil } from '@svc/contract/testing';
import { startChannelServer } from '../../testing/channel-server.ts';
import { openChannel, openWebSocket } from '../../testing/channel.ts';
import { RandomGenerator } from '../../testing/random-generator.ts';
import { createFakeAgent } from '../../testing/fake-agent.ts';
import { mutateFrame } from '../../testing/mutate-frame.ts';

/** A short run by default, the same every time; `make fuzz` sends more. */
const FRAMES = Number(process.env['SVC_FUZZ_FRAMES'] ?? 4000);
const SEED = Number(process.env['SVC_FUZZ_SEED'] || 1);
const FRAMES_PER_CONNECTION = 20;
const ANSWERS_PER_CALL = 5;
const CALL_MS = 60_000;

const GREETING = Buffer.concat([
  Buffer.from([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
  encodeMessage(0, 'core.ready', {
    boot_time_ns: 1,
    init_time_ns: 2,
    ready_time_ns: 3,
    features: ['svc.watch'],
  }),
]);

/** Requests of clients. */
const REQUESTS: readonly (readonly [string, Payload])[] = [
  ['core.exec.request', { cmd: 'true', args: ['a', 'b'], env: ['A=b'], cwd: '/', user: 'root', tty: false }],
  ['core.exec.stdin', { data: Buffer.from('input') }],
  ['core.exec.signal', { signal: 9, tree: true }],
  ['core.exec.resize', { rows: 24, cols: 80 }],
  ['core.fs.request', { op: { Stat: { path: '/a', follow_symlink: true } } }],
  ['core.fs.data', { data: Buffer.from('content') }],
  ['core.tcp.connect', { host: '127.0.0.1', port: 80 }],
  ['core.tcp.data', { data: Buffer.from('bytes') }],
  ['core.ping', {}],
  ['svc.detached.start', { key: 'k', cmd: 'true', args: [], env: [], tty: false }],
  ['svc.detached.read', { key: 'k', stdout: 0, stderr: 0 }],
  ['svc.watch.start', { path: '/a', recursive: true }],
  ['svc.udp.open', { port: 53 }],
];

const ENTRY = { path: '/a', kind: 'file', size: 1, mode: 0o644, uid: 0, gid: 0, mtime: 1 };
const STATE = {
  key: 'k',
  pid: 2,
  started_at_ns: 1e15,
  state: 'exited',
  code: 0,
  exited_at_ns: 2e15,
  tty: false,
};
const SIZES = { stdout: 0, stderr: 0, stdout_from: 0, stderr_from: 0 };

/** Answers of sandboxes: a process, a file, a connection, in any order. */
const ANSWERS: readonly (readonly [string, Payload])[] = [
  ['core.exec.started', { pid: 7 }],
  ['core.exec.stdout', { data: Buffer.from('output') }],
  ['core.exec.stderr', { data: Buffer.from('output') }],
  ['core.exec.exited', { code: 0, signal: null, reason: 'exit' }],
  [
    'core.exec.failed',
    { kind: 'not_found', message: 'no such program', errno_name: 'ENOENT', stage: 'exec' },
  ],
  ['core.fs.response', { ok: true, data: { Stat: ENTRY } }],
  ['core.fs.response', { ok: true, data: { List: [ENTRY] } }],
  ['core.fs.response', { ok: false, error: 'no such file' }],
  ['core.fs.data', { data: Buffer.from('content') }],
  ['core.tcp.connected', {}],
  ['core.tcp.data', { data: Buffer.from('bytes') }],
  ['core.tcp.eof', {}],
  ['core.tcp.closed', {}],
  ['core.pong', {}],
  ['core.touched', { idle_ns: 1 }],
  ['core.error', { kind: 'invalid_session', message: 'no' }],
  ['svc.detached.started', { pid: 2, started_at_ns: 1e15 }],
  ['svc.detached.listed', { processes: [{ ...STATE, ...SIZES }] }],
  ['svc.detached.end', { ...STATE, ...SIZES }],
  ['svc.watch.started', {}],
  ['svc.watch.events', { events: [{ kind: 'created', path: '/a' }] }],
  ['svc.udp.opened', {}],
  ['svc.udp.data', { data: Buffer.from('datagram') }],
];

/** The sandbox's end of a stream; passes received bytes to `receive`. */
function scripted(receive: (chunk: Uint8Array, stream: Duplex) => void): Duplex {
  const stream = new Duplex({
    read: () => undefined,
    write: (chunk: Uint8Array, _encoding, done) => {
      receive(Buffer.from(chunk), stream);
      done();
    },
  });
  stream.push(GREETING);
  return stream;
}

test(`of ${FRAMES} mutated frames of clients the sandbox gets what was sent, and no process is missing in the audit`, async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const random = new RandomGenerator(SEED);
  let started = 0;
  for (let sent = 0; sent < FRAMES;) {
    const arrived: Uint8Array[] = [];
    const over = Promise.withResolvers<void>();
    server.orchestrator.createAgent = () =>
      scripted((chunk) => arrived.push(chunk)).once('close', () => over.resolve());
    const cleanUp: (() => unknown)[] = [];
    const socket = await openWebSocket({ after: (end) => void cleanUp.push(end as () => unknown) }, address);
    const frames: Uint8Array[] = [];
    for (let count = 0; count < FRAMES_PER_CONNECTION && sent < FRAMES; count++, sent++) {
      const [type, payload] = random.oneOf(REQUESTS);
      const { bytes, damage } = mutateFrame(count + 1, type, payload, random);
      frames.push(bytes);
      socket.send(bytes);
      if (damage === 'length') break;
    }
    socket.close();
    // Waits for an event instead of polling: a million frames take some hundred thousand channels.
    await withinTime(over.promise, `seed ${SEED}, frame ${sent}: a channel does not end`);
    for (const end of cleanUp) end();
    const got = Buffer.concat(arrived);
    const whole = Buffer.concat(frames);
    assert.ok(got.equals(whole.subarray(0, got.length)), `seed ${SEED}, frame ${sent}: other bytes arrived`);
    started += processesIn(got);
  }
  const noted = async () =>
    (
      await server.database
        .selectFrom('events')
        .select('id')
        .where('event_type', '=', 'exec_started')
        .execute()
    ).length;
  await waitUntil(async () => (await noted()) >= started, `${started} processes in the audit`);
  t.diagnostic(`seed ${SEED}: ${started} processes were asked for`);
  assert.ok(started > FRAMES / 50, 'some requests must get through');
  server.orchestrator.createAgent = createFakeAgent;
  const { channel } = await openChannel(t, address);
  assert.equal((await channel.run({ cmd: 'true' })).code, 0);
});

async function withinTime(done: Promise<void>, otherwise: string): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(otherwise)), CALL_MS);
  try {
    await Promise.race([done, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Number of frames for which a sandbox would start a process. */
function processesIn(bytes: Uint8Array): number {
  let count = 0;
  const splitter = new FrameSplitter();
  try {
    for (const frame of splitter.push(bytes)) {
      const type = typeOf(frame);
      if (type === 'core.exec.request' || type === 'svc.detached.start') count += 1;
    }
  } catch {
    // The rest is not frames; a sandbox stops reading here too.
  }
  return count;
}

/**
 * The type of a frame; undefined when it cannot be decoded or its flags do not fit its type, in which case a sandbox
 * starts nothing.
 */
function typeOf(frame: Uint8Array): string | undefined {
  try {
    const { type, flags } = decodeMessage(frame);
    return (flags & 2) === 0 ? undefined : type;
  } catch {
    return undefined;
  }
}

const CALLS: readonly ((channel: ChannelClient, signal: AbortSignal) => Promise<unknown>)[] = [
  (channel, signal) => channel.run({ cmd: 'true' }, { signal }),
  (channel, signal) => channel.files.stat('/a', {}, signal),
  (channel, signal) => channel.files.list('/a', signal),
  (channel, signal) => channel.files.open('/a', { read: true }, signal),
  (channel, signal) => channel.files.read(1, 0, 100, signal),
  (channel, signal) => channel.connectTcp('127.0.0.1', 80, { signal }),
  (channel, signal) => channel.openUdp(53, () => undefined, { signal }),
  (channel, signal) => channel.ping({ signal }),
  (channel, signal) => channel.touch({ signal }),
  (channel, signal) => channel.detached.list(signal),
  (channel, signal) => channel.files.watch('/a', {}, signal),
];

test(`${FRAMES} mutated answers of a sandbox end calls with a result or in words, never in a bug`, async (t) => {
  const server = await startChannelServer(t);
  const { sandboxId } = await server.addSandbox();
  const random = new RandomGenerator(SEED);
  let sent = 0;
  let results = 0;
  for (let call = 0; call < FRAMES / ANSWERS_PER_CALL; call++) {
    server.orchestrator.createAgent = () =>
      scripted((chunk, stream) => {
        // Input of a process may follow its request in the same chunk.
        const [request = chunk] = new FrameSplitter().push(chunk);
        const { id, type: asked } = decodeMessage(request);
        for (let count = 0; count < ANSWERS_PER_CALL; count++, sent++) {
          const [type, payload] = random.oneOf(random.below(5) === 0 ? ANSWERS : answersTo(asked));
          stream.push(mutateFrame(id, type, payload, random).bytes);
        }
        stream.push(null);
      });
    const signal = AbortSignal.timeout(CALL_MS);
    const channel = await server.orchestrator.openChannel(sandboxId, signal);
    const before = sent;
    await random
      .oneOf(CALLS)(channel, signal)
      .then(
        () => (results += 1),
        (error: unknown) => assert.ok(isInWords(error), `seed ${SEED}, frame ${before}: ${describe(error)}`),
      );
    channel.close();
    assert.ok(sent > before, 'the call was sent');
  }
  t.diagnostic(`seed ${SEED}: ${results} calls had a result`);
  assert.ok(results > 0, 'some answers must be understood');
});

/** The answers of the same message group: `core.fs`, `svc.detached`. */
function answersTo(asked: string): typeof ANSWERS {
  const group = asked.split('.').slice(0, 2).join('.');
  const fitting = ANSWERS.filter(([type]) => type.startsWith(group));
  return fitting.length === 0 ? ANSWERS : fitting;
}

function isInWords(error: unknown): boolean {
  return [ChannelError, ExecFailed, FileFailed, PlatformError].some((kind) => error instanceof kind);
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
