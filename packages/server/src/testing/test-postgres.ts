import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { SilentProxy } from './silent-proxy.ts';

const run = promisify(execFile);
const START_TIMEOUT_MS = 60_000;

/** A PostgreSQL of its own in a temporary folder, reached by a unix socket; it refuses to run as root. */
export class TestPostgres implements AsyncDisposable {
  readonly #folder: string;
  readonly #launch: () => ChildProcess;
  #child: ChildProcess;
  #databases = 0;

  private constructor(folder: string, launch: () => ChildProcess) {
    this.#folder = folder;
    this.#launch = launch;
    this.#child = launch();
  }

  static async start(): Promise<TestPostgres> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-postgres-'));
    const bin = await findPrograms();
    const identity = findUser();
    if (identity.uid !== undefined) await chown(folder, identity.uid, identity.gid ?? 0);
    // A server that has changed its user must pass this folder to the socket; the data is in a folder of its own.
    await chmod(folder, 0o711);
    const data = join(folder, 'data');
    await run(join(bin, 'initdb'), ['-D', data, '-U', 'svc', '-A', 'trust', '--no-sync', '-E', 'UTF8'], {
      ...identity,
      cwd: folder,
    });
    const args = ['-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off'];
    const launch = () => spawn(join(bin, 'postgres'), args, { ...identity, cwd: folder, stdio: 'ignore' });
    const postgres = new TestPostgres(folder, launch);
    await postgres.#waitUntilReady();
    return postgres;
  }

  /** The URL of an empty database. */
  async createDatabase(): Promise<string> {
    return await this.#create('template0');
  }

  /** The URL of a database with the content of another, which must have no connections. */
  async copyDatabase(url: string): Promise<string> {
    return await this.#create(nameOf(url));
  }

  async #create(template: string): Promise<string> {
    this.#databases += 1;
    const name = `store_${this.#databases}`;
    await this.#query(`create database ${name} template ${template}`);
    return this.#url(name);
  }

  /** Rows that this selects `for update` stay locked until it is disposed of, like in an overloaded database. */
  async hold(url: string, select: string): Promise<AsyncDisposable> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('begin');
    await client.query(`${select} for update`);
    return { [Symbol.asyncDispose]: () => client.end() };
  }

  /** The URL of a database of `createDatabase` through a TCP proxy that can stop forwarding. */
  async throughProxy(url: string): Promise<{ readonly url: string; readonly proxy: SilentProxy }> {
    const proxy = await SilentProxy.start(join(this.#folder, '.s.PGSQL.5432'));
    return { url: `postgres://svc@127.0.0.1:${proxy.port}/${nameOf(url)}`, proxy };
  }

  /** Stops it during `work`, like a restart. */
  async whileDown(work: () => Promise<void>): Promise<void> {
    await this.#stop();
    try {
      await work();
    } finally {
      this.#child = this.#launch();
      await this.#waitUntilReady();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGINT');
    await exited;
  }

  #url(database: string): string {
    return `postgres://svc@/${database}?host=${encodeURIComponent(this.#folder)}`;
  }

  async #query(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url('postgres') });
    await client.connect();
    await client.query(sql);
    await client.end();
  }

  async #waitUntilReady(): Promise<void> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        return await this.#query('select 1');
      } catch (error) {
        if (performance.now() > deadline || this.#child.exitCode !== null) throw error;
        await new Promise((resolve) => void setTimeout(resolve, 20));
      }
    }
  }
}

/** The name of the database in a URL of `createDatabase`. */
function nameOf(url: string): string {
  return /\/(\w+)\?/.exec(url)?.[1] ?? '';
}

async function findPrograms(): Promise<string> {
  const root = '/usr/lib/postgresql';
  const version = (await readdir(root)).toSorted((a, b) => Number(b) - Number(a))[0];
  if (version === undefined) throw new Error('PostgreSQL is not installed');
  return join(root, version, 'bin');
}

function findUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const number = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}
