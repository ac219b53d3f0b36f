import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ChannelClient, encodeMessage, FrameSplitter, decodeMessage, type Payload } from '@svc/contract';
import { socketTransport } from '@svc/contract/node-socket-transport';

const INIT = new URL('../../../init/build/svc-init', import.meta.url).pathname;
/** The folders of this host's programs, with the interpreter that runs the tests first. */
const PATH = `${dirname(process.execPath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
const PREAMBLE_BYTES = 41;
const TOKEN_AT = 9;
const SESSION = 'S';

export interface TestSandboxOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: string;
}

/**
 * A sandbox without isolation: the real svc-init, PID 1 of a pid and a network namespace of its own, on the files of this host. The
 * class acts as the engine, as described in packages/init/PROTOCOL.md.
 */
export class TestSandbox {
  readonly #folder: string;
  readonly #token = randomBytes(32).toString('hex');
  readonly #sessions: Socket[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #options: TestSandboxOptions;
  #server: Server | undefined;
  #control: Socket | undefined;
  #child: ChildProcess | undefined;
  #wake: (() => void)[] = [];
  /** Reports a child that died of SIGKILL as a victim of the OOM killer. */
  blamesMemory = false;

  private constructor(folder: string, options: TestSandboxOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  static async start(options: TestSandboxOptions = {}): Promise<TestSandbox> {
    const sandbox = new TestSandbox(await mkdtemp(join(tmpdir(), 'svc-code-')), options);
    await sandbox.listen();
    sandbox.#launch();
    await sandbox.#until(() => sandbox.#control !== undefined);
    return sandbox;
  }

  async openChannel(signal: AbortSignal): Promise<ChannelClient> {
    if (this.#control === undefined) throw new Error('the engine is away');
    this.#control.write(encodeMessage(0, 'svc.dial', { count: 1 }));
    let socket: Socket | undefined;
    // Another waiter may have taken it first.
    while (socket === undefined) {
      await this.#until(() => this.#sessions.length > 0);
      socket = this.#sessions.shift();
    }
    return await ChannelClient.connect(socketTransport(socket), { signal });
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => this.#greet(socket));
    this.#server = server;
    server.listen(join(this.#folder, 'engine.sock'));
    await once(server, 'listening');
  }

  /** Acts as a killed engine: every connection ends at once and the socket is closed. */
  async loseEngine(): Promise<void> {
    this.#control = undefined;
    for (const socket of this.#sockets) socket.destroy();
    const server = this.#server;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    await closed;
  }

  /** Listens again and waits until the sandbox has reconnected. */
  async restoreEngine(): Promise<void> {
    await this.listen();
    await this.#until(() => this.#control !== undefined);
  }

  async stop(): Promise<void> {
    this.#child?.kill('SIGKILL');
    if (this.#child?.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    await this.loseEngine();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #launch(): void {
    const env = {
      PATH,
      SVC_SOCKET: join(this.#folder, 'engine.sock'),
      SVC_TOKEN: this.#token,
      SVC_PROFILE: 'none',
    };
    const namespaces = ['--pid', '--fork', '--kill-child', '--mount-proc', '--net'];
    const start = ['sh', '-c', 'ip link set lo up && exec "$0"', INIT];
    this.#child = spawn('unshare', [...namespaces, ...start], { env, stdio: 'ignore' });
  }

  #greet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    let early = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      early = Buffer.concat([early, chunk]);
      if (early.length < PREAMBLE_BYTES) return;
      socket.off('data', take);
      socket.pause();
      if (early.toString('hex', TOKEN_AT, PREAMBLE_BYTES) !== this.#token) return void socket.destroy();
      socket.unshift(early.subarray(PREAMBLE_BYTES));
      if (early.toString('latin1', 4, 5) === SESSION) this.#sessions.push(socket);
      else this.#serveControl(socket);
      this.#notify();
    };
    socket.on('data', take);
  }

  #serveControl(socket: Socket): void {
    const splitter = new FrameSplitter();
    const send = (id: number, type: string, payload: Payload) =>
      socket.write(encodeMessage(id, type, payload));
    socket.on('data', (chunk: Buffer) => {
      for (const frame of splitter.push(chunk)) {
        const { id, type } = decodeMessage(frame);
        if (type === 'svc.configured') {
          this.#control = socket;
          this.#notify();
        } else if (type === 'svc.killed') send(id, 'svc.killed.answer', { oom: this.blamesMemory });
      }
    });
    const { env = {}, user = null } = this.#options;
    const variables = Object.entries({ PATH, ...env });
    send(1, 'svc.configure', {
      env: variables.map(([name, value]) => `${name}=${value}`),
      user,
      workdir: '/tmp',
      shell: null,
      rlimits: [],
      files: [],
      path_prefix: null,
    });
    socket.resume();
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  async #until(isTrue: () => boolean): Promise<void> {
    const deadline = performance.now() + 60_000;
    while (!isTrue()) {
      if (performance.now() > deadline)
        throw new Error('svc-init did not do in time what the test waits for');
      await new Promise<void>((resolve) => {
        this.#wake.push(resolve);
        setTimeout(resolve, 200);
      });
    }
  }
}
