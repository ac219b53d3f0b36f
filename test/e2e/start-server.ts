import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { readStatus, SERVER_MAIN } from '@svc/server/admin';
import { TestEngine } from '../engine/start-engine.ts';

/** The user of the web-facing process; no other process of the host has it. */
export const SERVICE_USER = '64555:64555';

export interface RpcEnvelope {
  readonly jsonrpc: '2.0';
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data: unknown };
}

/** A real server as its own process, started as root, on a real engine. */
export class TestServer {
  readonly engine: TestEngine;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  url = '';

  private constructor(engine: TestEngine, args: readonly string[]) {
    this.engine = engine;
    this.#args = args;
  }

  static async start(
    options: {
      readonly args?: readonly string[];
      readonly engineArgs?: readonly string[];
      /** Where the data folder is made. */
      readonly parent?: string;
    } = {},
  ): Promise<TestServer> {
    const engine = await TestEngine.start({
      args: ['--socket-owner', SERVICE_USER, ...(options.engineArgs ?? [])],
      ...(options.parent === undefined ? {} : { parent: options.parent }),
    });
    const server = new TestServer(engine, options.args ?? ['--dev']);
    try {
      await server.launch();
      return server;
    } catch (error) {
      await server.destroy();
      throw error;
    }
  }

  /** The supervisor, or the whole server when it is not supervised. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** The web-facing process. */
  async webPid(): Promise<number> {
    const children = await readFile(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8');
    return Number(children.trim().split(' ')[0]);
  }

  async launch(): Promise<void> {
    const child = this.spawn();
    this.#child = child;
    await waitUntil(
      async () => {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`the server ended: ${await this.log()}`);
        const status = await readStatus(this.engine.folder).catch(() => undefined);
        this.url = status?.url ?? '';
        return status?.engine.isHealthy === true;
      },
      { timeoutMs: 150_000, what: 'the server is healthy' },
    );
    // A test that is over does not wait for it; it ends with its engine.
    child.unref();
  }

  /** One more process with the same arguments; for what must be refused. */
  spawn(): ChildProcess {
    const log = openSync(join(this.engine.folder, 'server.log'), 'a');
    // The engine is the test's, which may want it away.
    const socket = join(this.engine.folder, 'engine.sock');
    const place = [
      '--path',
      this.engine.folder,
      '--port',
      '0',
      '--run-as',
      SERVICE_USER,
      '--engine-socket',
      socket,
    ];
    return spawn(process.execPath, [SERVER_MAIN, ...place, ...this.#args], { stdio: ['ignore', log, log] });
  }

  /** On the same engine and folder with more arguments; this one must have ended. */
  with(...args: readonly string[]): TestServer {
    return new TestServer(this.engine, [...this.#args, ...args]);
  }

  async log(): Promise<string> {
    return await readFile(join(this.engine.folder, 'server.log'), 'utf8');
  }

  async post(
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly body: RpcEnvelope }> {
    const response = await fetch(`${this.url}/api/v1/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as RpcEnvelope };
  }

  async call(
    method: string,
    params: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RpcEnvelope> {
    return (await this.post({ jsonrpc: '2.0', method, params, id: 1 }, headers)).body;
  }

  /** SIGTERM; returns the exit code. */
  async stop(): Promise<number | null> {
    return await this.#end('SIGTERM');
  }

  /** As the kernel would end it, the web-facing process first, so that nothing of it can be finished. */
  async kill(): Promise<void> {
    const web = await this.webPid();
    // So that it does not start another one.
    this.#child?.kill('SIGSTOP');
    // SAFETY: 0 would be everything that runs this test.
    if (web > 0) process.kill(web, 'SIGKILL');
    await this.#end('SIGKILL');
    await waitUntil(() => hasEnded(web), { what: 'the web-facing process has ended' });
  }

  async destroy(): Promise<void> {
    await this.stop();
    await this.engine.destroy();
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return null;
    const ended = once(child, 'exit') as Promise<[number | null]>;
    child.ref();
    child.kill(signal);
    return (await ended)[0];
  }
}

/** A zombie counts as ended: it holds no resources any more. */
function hasEnded(pid: number): boolean {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    // It is gone.
    return true;
  }
}
