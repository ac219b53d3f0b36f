import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../e2e/start-server.ts';
import { withNewerLibc } from './newer-libc.ts';

interface Build {
  readonly folder: string;
  /** Of the C library that it was linked against. */
  readonly libc: string;
  /** What this version cannot ask of a server yet. */
  readonly lacks: readonly Lack[];
}

type Lack = 'logs' | 'connectOrCreate' | 'files of volumes';

/** What is published for which machine. */
const BUILDS: Partial<Record<NodeJS.Architecture, Build>> = {
  x64: { folder: import.meta.dirname, libc: '2.28', lacks: [] },
  arm64: {
    folder: join(import.meta.dirname, 'arm64'),
    libc: '2.39',
    lacks: ['logs', 'connectOrCreate', 'files of volumes'],
  },
};
const BUILD = buildFor(process.arch);
const PACKAGE = join(BUILD.folder, 'node_modules/microsandbox');
const MSB = join(PACKAGE, 'bin/microsandbox.cjs');
const SVC = join(import.meta.dirname, '../../svc');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Typed {
  readonly after: string;
  readonly text: string;
}

/** Whether the newest client for this machine cannot do this. Set-up says so where it is the case. */
export function isLacking(lack: Lack): boolean {
  return BUILD.lacks.includes(lack);
}

/** The published client of the reference product, unmodified, pointed at a real server of ours. */
export class ReferenceClient {
  readonly server: TestServer;
  /** Its home, and room for files of the test. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;

  private constructor(server: TestServer, folder: string, key: string) {
    this.server = server;
    this.folder = folder;
    this.env = {
      HOME: folder,
      // Programs of the client are started by name.
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      MSB_BACKEND: 'cloud',
      MSB_API_URL: server.url,
      MSB_API_KEY: key,
      // For programs of this folder, which would find the one beside them.
      MSB_LIBRARY: createRequire(join(PACKAGE, 'package.json')).resolve('microsandbox'),
    };
  }

  static async start(): Promise<ReferenceClient> {
    const server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    const folder = await mkdtemp(join(tmpdir(), 'svc-interop-'));
    try {
      // Made as a user makes it, with our own command line.
      const { stdout } = await promisify(execFile)(SVC, ['apikey', 'create', '--path', server.engine.folder]);
      return new ReferenceClient(server, folder, stdout.trim());
    } catch (error) {
      await server.destroy();
      throw error;
    }
  }

  /** The same client with a key of another organization. */
  async ofOrganization(namespace: string): Promise<ReferenceClient> {
    const { key } = await createKey(this.server.engine.folder, { namespace });
    return new ReferenceClient(this.server, this.folder, key);
  }

  /** Runs the command-line tool to its end. */
  async msb(args: readonly string[], options: { readonly input?: string } = {}): Promise<Ended> {
    const [command = '', ...words] = this.node(MSB, ...args);
    return await this.run(command, words, options);
  }

  /** The command that runs a script of the client, or one that uses it. */
  node(...words: readonly string[]): readonly string[] {
    return withNewerLibc([process.execPath, ...words], { least: BUILD.libc, folder: this.folder });
  }

  /** Runs `msb` at a terminal of 33 lines, and types a text once the screen shows another. */
  async msbAtTerminal(args: readonly string[], typed: Typed): Promise<Ended> {
    const command = this.node(MSB, ...args)
      .map(quoted)
      .join(' ');
    const script = `stty rows 33 cols 99; exec ${command}`;
    return await this.run('script', ['-qec', script, '/dev/null'], { typed });
  }

  /** A program of this folder that uses the client as a library; it prints one JSON value. */
  async program(name: string, ...args: readonly string[]): Promise<unknown> {
    const [command = '', ...words] = this.node(join(import.meta.dirname, name), ...args);
    const { code, stdout, stderr } = await this.run(command, words);
    if (code !== 0) throw new Error(`${name} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  async run(
    command: string,
    args: readonly string[],
    { input, typed }: { readonly input?: string; readonly typed?: Typed } = {},
  ): Promise<Ended> {
    const child = spawn(command, args, { env: this.env, cwd: this.folder, timeout: 110_000 });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (data: Buffer) => {
      const wasShown = typed === undefined || stdout.includes(typed.after);
      stdout += data.toString();
      if (!wasShown && stdout.includes(typed.after)) child.stdin.write(typed.text);
    });
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    child.stdin.on('error', () => undefined);
    if (typed === undefined) child.stdin.end(input ?? '');
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return { code, stdout, stderr };
  }

  async destroy(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    await this.server.destroy();
  }
}

function buildFor(architecture: NodeJS.Architecture): Build {
  const build = BUILDS[architecture];
  if (build === undefined) throw new Error(`the reference client is not published for ${architecture}`);
  return build;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
