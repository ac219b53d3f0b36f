import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../packages/server/src/testing/free-port.ts';

const exec = promisify(execFile);
const SVC = resolve(import.meta.dirname, '../../svc');

/** The user of the web-facing processes, whose key files they can read. */
export const SERVER_USER = '64556:64556';

interface FleetServerOptions {
  readonly address: string;
  readonly options: readonly string[];
  /** Network namespace that plays another host. */
  readonly namespace?: string;
  /** A server of the same database. */
  readonly keysOf?: FleetServer;
}

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A server without an engine of its own, with a data folder of its own, perhaps on another host. */
export class FleetServer {
  readonly folder: string;
  readonly url: string;
  readonly #prefix: readonly string[];

  private constructor(folder: string, url: string, prefix: readonly string[]) {
    this.folder = folder;
    this.url = url;
    this.#prefix = prefix;
  }

  static async start({ address, options, namespace, keysOf }: FleetServerOptions): Promise<FleetServer> {
    const port = await freePort();
    const prefix = namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace];
    const server = new FleetServer(await makeFolder(), `http://${address}:${port}`, prefix);
    if (keysOf !== undefined) {
      const keys = ['secrets.key', 'signing.key'].map((name) => join(keysOf.folder, 'server', name));
      await exec('install', ['-d', '-m', '700', join(server.folder, 'server')]);
      await exec('cp', ['-a', ...keys, join(server.folder, 'server')]);
    }
    const place = ['--host', address, '--port', String(port), '--run-as', SERVER_USER];
    const { code, stdout, stderr } = await server.svc(
      'server',
      'start',
      '--dev',
      '--detach',
      ...place,
      ...options,
    );
    if (code !== 0) throw new Error(`the server did not start: ${stdout}${stderr}`);
    return server;
  }

  /** Of a start that fails. */
  static async refused(options: readonly string[]): Promise<Outcome> {
    const server = new FleetServer(await makeFolder(), '', []);
    try {
      return await server.svc('server', 'start', '--dev', '--detach', '--port', '0', ...options);
    } finally {
      await server.clear();
    }
  }

  async svc(...words: readonly string[]): Promise<Outcome> {
    const env = { PATH: process.env['PATH'], HOME: this.folder, SVC_API_URL: this.url };
    const [program = '', ...rest] = [...this.#prefix, SVC, '--path', this.folder, ...words];
    return await exec(program, rest, { env }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }: Outcome) => ({ code, stdout, stderr }),
    );
  }

  /** What a program on the host of this server prints. */
  async onItsHost(...words: readonly string[]): Promise<string> {
    const [program = '', ...rest] = [...this.#prefix, ...words];
    return (await exec(program, rest)).stdout;
  }

  async clear(): Promise<void> {
    await this.svc('server', 'stop');
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-fleet-'));
  await chmod(folder, 0o711);
  return folder;
}
