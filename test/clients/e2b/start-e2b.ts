import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { addDemoImages } from '../../e2e/demo-images.ts';
import { TestServer } from '../../e2e/start-server.ts';

const SVC = join(import.meta.dirname, '../../../svc');
const PYTHON_BUILD = join(import.meta.dirname, 'python/build');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly typed?: { readonly after: string; readonly text: string };
  /** Instead of those that `svc e2b env` prints. */
  readonly variables?: Readonly<Record<string, string>>;
}

type Image = Parameters<typeof addDemoImages>[1];

/** E2B's published clients, unmodified, pointed at a real server of ours by the variables that `svc e2b env` prints. */
export class E2bClients {
  readonly server: TestServer;
  readonly variables: Readonly<Record<string, string>>;
  readonly #folder: string;

  private constructor(server: TestServer, folder: string, variables: Readonly<Record<string, string>>) {
    this.server = server;
    this.#folder = folder;
    this.variables = variables;
  }

  static async start(...images: readonly Image[]): Promise<E2bClients> {
    return await E2bClients.startWith([], images);
  }

  /** On a server with further arguments, or another class of isolation. */
  static async startWith(
    args: readonly string[],
    images: readonly Image[],
    isolation: 'container' | 'gvisor' = 'container',
  ): Promise<E2bClients> {
    const server = await TestServer.start({ args, engineArgs: ['--isolation', isolation] });
    try {
      await addDemoImages(server.engine, ...images);
      const key = await keyOf(server, 'default');
      const { stdout } = await promisify(execFile)(SVC, ['e2b', 'env'], {
        env: { ...process.env, SVC_API_URL: server.url, SVC_API_KEY: key },
      });
      const lines = [...stdout.matchAll(/^export (\w+)='?([^'\n]*)'?$/gm)];
      const variables = Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]));
      // Beside the packages, so that programs in it find them.
      const folder = await mkdtemp(join(import.meta.dirname, 'node_modules/.svc-'));
      return new E2bClients(server, folder, variables);
    } catch (error) {
      await server.destroy();
      throw error;
    }
  }

  /** Where programs run, and their home. */
  get folder(): string {
    return this.#folder;
  }

  /** What E2B's clients take in place of the variables. */
  get options() {
    const { E2B_API_KEY = '', E2B_API_URL = '', E2B_SANDBOX_URL = '' } = this.variables;
    return { apiKey: E2B_API_KEY, apiUrl: E2B_API_URL, sandboxUrl: E2B_SANDBOX_URL };
  }

  /** The same with a key of another organization. */
  async optionsOf(organization: string) {
    return { ...this.options, apiKey: await keyOf(this.server, organization) };
  }

  /** Runs a text as a program of its own that finds E2B's packages. */
  async node(program: string): Promise<Ended> {
    return await this.run(process.execPath, [await this.#write('program.mjs', program)]);
  }

  async python(program: string): Promise<Ended> {
    return await this.run('/usr/bin/python3', [await this.#write('program.py', program)]);
  }

  /** @param typed written to the program once it has shown something */
  async run(
    command: string,
    args: readonly string[],
    { typed, variables = this.variables }: RunOptions = {},
  ): Promise<Ended> {
    const env = { PATH: process.env['PATH'], HOME: this.#folder, PYTHONPATH: PYTHON_BUILD, ...variables };
    const child = spawn(command, args, { env, cwd: this.#folder, timeout: 110_000 });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (data: Buffer) => {
      const wasShown = typed === undefined || stdout.includes(typed.after);
      stdout += data.toString();
      if (!wasShown && stdout.includes(typed.after)) child.stdin.write(typed.text);
    });
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    child.stdin.on('error', () => undefined);
    if (typed === undefined) child.stdin.end();
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return { code, stdout, stderr };
  }

  async destroy(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await this.server.destroy();
  }

  async #write(name: string, text: string): Promise<string> {
    const path = join(this.#folder, name);
    await writeFile(path, text);
    return path;
  }
}

async function keyOf({ engine }: TestServer, namespace: string): Promise<string> {
  return (await createKey(engine.folder, { namespace })).key;
}
