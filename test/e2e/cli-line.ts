import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before } from 'node:test';
import { createKey } from '@svc/server/keys';
import { TestServer } from './start-server.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const TIMEOUT_MS = 110_000;

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** stdout as it came. */
  readonly bytes: Buffer;
}

/** Of the server, and of its engine. */
export interface CliOptions {
  readonly args?: readonly string[];
  readonly engineArgs?: readonly string[];
}

/** `svc` as a person types it, with a home of its own, against a real server that asks for a key. */
export class CliLine {
  readonly server: TestServer;
  readonly home: string;
  readonly #key: string;

  private constructor(server: TestServer, home: string, key: string) {
    this.server = server;
    this.home = home;
    this.#key = key;
  }

  static async start({ args = [], engineArgs = [] }: CliOptions = {}): Promise<CliLine> {
    const server = await TestServer.start({ args, engineArgs: ['--isolation', 'container', ...engineArgs] });
    const { key } = await createKey(server.engine.folder, { namespace: 'default' });
    return new CliLine(server, await mkdtemp(join(tmpdir(), 'svc-cli-home-')), key);
  }

  get env(): Readonly<Record<string, string>> {
    return { ...this.bareEnv, SVC_API_URL: this.server.url, SVC_API_KEY: this.#key };
  }

  /** Without a server. */
  get bareEnv(): Readonly<Record<string, string>> {
    return { PATH: process.env['PATH'] ?? '', HOME: this.home };
  }

  spawn(words: readonly string[], env: Readonly<Record<string, string>> = this.env): ChildProcess {
    return spawn(SVC, words, { stdio: 'pipe', timeout: TIMEOUT_MS, env, cwd: this.home });
  }

  async run(
    words: readonly string[],
    {
      input,
      env,
    }: { readonly input?: string | Buffer; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<Outcome> {
    const child = spawn(SVC, words, { timeout: TIMEOUT_MS, env: env ?? this.env, cwd: this.home });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const [stdout, stderr, [code]] = await Promise.all([
      buffer(child.stdout),
      buffer(child.stderr),
      once(child, 'exit') as Promise<[number | null]>,
    ]);
    return { code, stdout: stdout.toString(), stderr: stderr.toString(), bytes: stdout };
  }

  async succeed(words: readonly string[], input?: string | Buffer): Promise<string> {
    const { code, stdout, stderr } = await this.run(words, input === undefined ? {} : { input });
    if (code !== 0) throw new Error(`svc ${words.join(' ')} exited with ${code}: ${stderr}`);
    return stdout;
  }

  async json<T>(words: readonly string[]): Promise<T> {
    return JSON.parse(await this.succeed([...words.slice(0, 1), '-o', 'json', ...words.slice(1)])) as T;
  }

  async close(): Promise<void> {
    await this.server.destroy();
    await rm(this.home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** Started before the tests of the file that calls this, with what `prepare` makes, and gone after them. */
export function useCli(
  prepare?: (svc: CliLine) => Promise<unknown>,
  options: CliOptions | (() => Promise<CliOptions>) = {},
): { readonly svc: CliLine } {
  let svc: CliLine | undefined;
  before(async () => {
    svc = await CliLine.start(typeof options === 'function' ? await options() : options);
    await prepare?.(svc);
  });
  after(() => svc?.close());
  return {
    get svc() {
      if (svc === undefined) throw new Error('it is there only while the tests run');
      return svc;
    },
  };
}
