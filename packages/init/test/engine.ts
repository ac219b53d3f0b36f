import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Channel, TIMEOUT_MS } from './channel.ts';
import type { Frame, Payload } from './channel.ts';

const packageDir = join(import.meta.dirname, '..');
/** The build with AddressSanitizer and UBSan: what most tests drive. */
export const checkedBinary = join(packageDir, 'build', 'svc-init-asan');
export const releaseBinary = join(packageDir, 'build', 'svc-init');

// Test files run in parallel; one of them builds, the others wait for it.
execFileSync('flock', [packageDir, 'make', '-s', '-C', packageDir, 'build/svc-init', 'asan', 'fuzz']);

export interface EngineOptions {
  readonly binary?: string;
  readonly profile?: string;
  readonly configure?: Payload | null;
  /** Limit of open descriptors svc-init is started with. */
  readonly nofile?: number;
  /** Whether new processes share its memory until their exec. */
  readonly spawn?: 'fork' | 'shared';
}

/** Acts as the engine: listens, starts svc-init as PID 1 of a new pid namespace, and keeps the connections that it dials. */
export class Engine {
  readonly dir = mkdtempSync(join(tmpdir(), 'svc-init-'));
  readonly token = randomBytes(32).toString('hex');
  readonly sessions: Channel[] = [];
  readonly controls: Channel[] = [];
  stderr = '';
  child!: ChildProcess;
  /** Resolves when it has ended and all its stderr is here. */
  #closed: Promise<unknown> = Promise.resolve();
  #server: Server | undefined;
  #sockets = new Set<Socket>();
  #waiting: (() => void)[] = [];

  static async start(t: TestContext, options: EngineOptions = {}): Promise<Engine> {
    const engine = new Engine();
    t.after(() => engine.stop());
    await engine.listen();
    engine.#spawn(options);
    await engine.control();
    if (options.configure !== null) await engine.configure(options.configure ?? {});
    return engine;
  }

  #spawn(options: EngineOptions): void {
    const binary = options.binary ?? checkedBinary;
    const env = {
      SVC_SOCKET: join(this.dir, 'engine.sock'),
      SVC_TOKEN: this.token,
      SVC_PROFILE: options.profile ?? 'default',
      SVC_SPAWN: options.spawn ?? 'fork',
    };
    const limit = options.nofile ?? 4096;
    const args = [
      `--nofile=${limit}:${limit}`,
      'unshare',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      '--net',
      // As in a sandbox, where root must not look into other processes.
      'setpriv',
      '--bounding-set=-sys_ptrace',
      binary,
    ];
    this.child = spawn('prlimit', args, {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    this.#closed = once(this.child, 'close');
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => this.#greet(socket));
    this.#server = server;
    server.listen(join(this.dir, 'engine.sock'));
    await once(server, 'listening');
  }

  /** As when the engine is killed: every connection ends at once and the socket has no listener. */
  async goAway(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.sessions.length = 0;
    this.controls.length = 0;
    const closed = server ? once(server, 'close') : undefined;
    server?.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  control(): Promise<Channel> {
    return this.#when(() => this.controls.at(-1), 'the control connection');
  }

  async hello(): Promise<Payload> {
    return (await (await this.control()).takeType('svc.hello')).payload;
  }

  async configure(payload: Payload): Promise<void> {
    const answer = await (await this.control()).call('svc.configure', payload);
    if (answer.type !== 'svc.configured') throw new Error(JSON.stringify(answer));
  }

  /** A fresh session connection, past core.ready. */
  async session(): Promise<Channel> {
    const control = await this.control();
    const before = this.sessions.length;
    control.send(0, 'svc.dial', { count: 1 });
    const session = await this.#when(() => this.sessions[before], 'a session connection');
    await session.takeType('core.ready');
    return session;
  }

  /** The host's pid of svc-init. */
  get pid(): number {
    return Number(readFileSync(`/proc/${this.child.pid}/task/${this.child.pid}/children`, 'utf8').trim());
  }

  get residentKib(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))?.[1]);
  }

  async exited(): Promise<number | null> {
    await this.#closed;
    return this.child.exitCode;
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited();
    await this.goAway();
    // Processes of the sandbox may write until the kernel has killed the last of them.
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
    if (/ERROR: AddressSanitizer|runtime error|LeakSanitizer/.test(this.stderr)) throw new Error(this.stderr);
  }

  #greet(socket: Socket): void {
    let early = Buffer.alloc(0);
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const onData = (chunk: Buffer): void => {
      early = Buffer.concat([early, chunk]);
      const kind = early.toString('latin1', 4, 5);
      const needed = kind === 'S' ? 49 : 41;
      if (early.length < needed) return;
      socket.off('data', onData);
      const isOurs = early.toString('latin1', 0, 4) === 'SVC1' && early.toString('hex', 9, 41) === this.token;
      if (!isOurs || (kind === 'S' && early.toString('hex', 41, 49) !== '00000001ffffffff')) {
        socket.destroy();
        return;
      }
      const channel = new Channel(socket, early.readUInt32BE(5), early.subarray(needed), answerFailed);
      (kind === 'S' ? this.sessions : this.controls).push(channel);
      for (const wake of this.#waiting.splice(0)) wake();
    };
    socket.on('data', onData);
  }

  async #when<T>(find: () => T | undefined, what: string): Promise<T> {
    const deadline = AbortSignal.timeout(TIMEOUT_MS);
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (deadline.aborted) throw new Error(`no ${what} in time: ${this.stderr}`);
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        setTimeout(resolve, 200);
      });
    }
  }
}

/** Default answers: failed processes are unexplained. A test that kills one answers the question itself. */
function answerFailed(control: Channel, { id, type }: Frame): boolean {
  if (type !== 'svc.failed') return false;
  control.send(id, 'svc.failed.answer', { pids: false });
  return true;
}

export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly end: Frame;
}

/** Runs a command to its end and returns everything it printed. */
export async function run(
  channel: Channel,
  cmd: string,
  args: readonly string[] = [],
  options: Payload = {},
): Promise<Outcome> {
  const id = channel.newId();
  channel.send(id, 'core.exec.request', { cmd, args, ...options });
  return collect(channel, id);
}

export function shell(channel: Channel, script: string, options: Payload = {}): Promise<Outcome> {
  return run(channel, '/bin/sh', ['-c', script], options);
}

/** Waits for the end of an exec and takes all of its frames. */
export async function collect(channel: Channel, id: number, timeoutMs?: number): Promise<Outcome> {
  const end = await channel.take(
    (frame) => frame.id === id && (frame.flags & 1) === 1,
    `the end of exec ${id}`,
    timeoutMs,
  );
  const mine = channel.frames.filter((frame) => frame.id === id);
  const text = (type: string): string =>
    Buffer.concat(
      mine.filter((frame) => frame.type === type).map((frame) => frame.payload['data'] as Uint8Array),
    ).toString();
  const outcome = { stdout: text('core.exec.stdout'), stderr: text('core.exec.stderr'), end };
  channel.frames.splice(0, channel.frames.length, ...channel.frames.filter((frame) => frame.id !== id));
  return outcome;
}
