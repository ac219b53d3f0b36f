import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { Duplex } from 'node:stream';
import { decodeMessage, encodeMessage, FrameSplitter, type Message, type Payload } from '@svc/contract';
import { toVariables } from '../processes/variables.ts';
import { FakeTcp } from './fake-tcp.ts';

const HELLO = encodeMessage(0, 'core.ready', {
  boot_time_ns: 1,
  init_time_ns: 2,
  ready_time_ns: 3,
  agent_version: 'fake',
});
/** A program that the agent accepts and never starts. */
export const NEVER_STARTS = 'never-starts';
const ID_RANGE = Uint8Array.of(0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff);

/**
 * The sandbox's end of a command channel that starts real processes on this host: for tests, with programs that the test itself chose.
 * It implements exec and TCP, and answers pings.
 */
export function createFakeAgent(env: Readonly<Record<string, string>>, cwd: string): Duplex {
  const processes = new Map<number, ChildProcess>();
  const splitter = new FrameSplitter();
  const stream = new Duplex({
    read: () => undefined,
    write: (chunk: Uint8Array, _encoding, done) => {
      for (const frame of splitter.push(chunk)) receive(decodeMessage(frame));
      done();
    },
    destroy: (error, done) => {
      for (const child of processes.values()) signalGroup(child, constants.signals.SIGKILL);
      tcp.destroy();
      done(error);
    },
  });
  const send = (id: number, type: string, payload: Payload) => {
    if (!stream.destroyed) stream.push(encodeMessage(id, type, payload));
  };
  const tcp = new FakeTcp(send);
  const receive = (message: Message) => {
    const { id, type, payload } = message;
    if (type.startsWith('core.tcp.')) return tcp.receive(message);
    if (type === 'core.ping') return send(id, 'core.pong', {});
    const child = processes.get(id);
    if (type === 'core.exec.request') {
      if (payload['cmd'] === NEVER_STARTS) return;
      processes.set(
        id,
        startProcess(payload, env, cwd, (answer, body) => send(id, answer, body)),
      );
    } else if (type === 'core.exec.stdin') writeStdin(child, payload['data'] as Uint8Array);
    else if (type === 'core.exec.signal' && child !== undefined)
      signalGroup(child, Number(payload['signal']));
  };
  stream.push(ID_RANGE);
  stream.push(HELLO);
  return stream;
}

function startProcess(
  request: Payload,
  env: Readonly<Record<string, string>>,
  cwd: string,
  answer: (type: string, payload: Payload) => void,
): ChildProcess {
  const {
    cmd,
    args,
    env: own,
    cwd: place,
  } = request as { cmd: string; args: string[]; env: string[]; cwd: string | null };
  // SAFETY: only tests get here, with programs they chose; no shell.
  const child = spawn(cmd, args, {
    env: { PATH: '/usr/bin:/bin', ...env, ...toVariables(own) },
    cwd: place ?? cwd,
    detached: true,
  });
  child.on('spawn', () => answer('core.exec.started', { pid: child.pid ?? 0 }));
  child.on('error', (error: NodeJS.ErrnoException) => {
    const kind = error.code === 'ENOENT' ? 'not_found' : 'permission_denied';
    answer('core.exec.failed', {
      kind,
      message: `${cmd}: ${error.code === 'ENOENT' ? 'no such program on PATH' : 'cannot be executed'}`,
      errno_name: error.code ?? null,
    });
  });
  child.stdout.on('data', (data: Uint8Array) => answer('core.exec.stdout', { data }));
  child.stderr.on('data', (data: Uint8Array) => answer('core.exec.stderr', { data }));
  child.stdin.on('error', () => undefined);
  child.on('close', (code, signal) => {
    if (child.pid === undefined) return;
    answer('core.exec.exited', {
      code: code ?? -1,
      signal: signal === null ? null : constants.signals[signal],
      reason: signal === null ? 'exit' : 'signal',
    });
  });
  return child;
}

function writeStdin(child: ChildProcess | undefined, data: Uint8Array): void {
  if (data.length === 0) child?.stdin?.end();
  else child?.stdin?.write(data);
}

function signalGroup(child: ChildProcess, signal: number): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It ended at this moment.
  }
}
