import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, globSync, openSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { EngineClient, readProcessState } from '@svc/engine/client';
import { readStatus, SERVER_MAIN } from '@svc/server/admin';
import { writeBusyboxRootfs } from '../../packages/engine/src/testing/test-images.ts';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { SERVICE_USER } from '../e2e/start-server.ts';
import { BUSYBOX, claimAddressPool } from '../engine/start-engine.ts';

/** What a fault can hit. `tini` is the engine's subreaper, `nft` the one that changes the firewall. */
export const TARGETS = ['web', 'engine', 'supervisor', 'tini', 'svc-host', 'nft', 'resolver'] as const;
export type Target = (typeof TARGETS)[number];

const SETTLE_MS = 90_000;
const LAST_LINES = 6;
const run = promisify(execFile);

/** A server as an operator has it: a supervisor that keeps the engine and the web-facing process running. */
export class Installation {
  readonly folder: string;
  readonly url: string;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();

  private constructor(folder: string, port: number, pool: string) {
    this.folder = folder;
    this.url = `http://127.0.0.1:${port}`;
    const place = ['--path', folder, '--port', String(port), '--run-as', SERVICE_USER];
    this.#args = [...place, '--dev', '--isolation', 'container', '--address-pool', pool];
  }

  static async start(): Promise<Installation> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-faults-'));
    await chmod(folder, 0o711);
    const installation = new Installation(folder, await freePort(), await claimAddressPool());
    try {
      await installation.launch();
      await installation.#importBusybox();
      return installation;
    } catch (error) {
      await installation.destroy();
      throw error;
    }
  }

  get engine(): EngineClient {
    return new EngineClient({ socketPath: join(this.folder, 'engine-root.sock') });
  }

  /** Starts the supervisor, unless it runs, and waits until all is well. */
  async launch(): Promise<void> {
    // One that was killed is seen by others a moment before its exit is told to us. Not looked for among all: a list of processes that
    // is read while others come and go may lack one that runs, and its exit would be waited for in vain.
    if (this.#child !== undefined && !readProcessState(this.#child.pid ?? 0)) await this.#exited;
    if (this.#child === undefined || hasExited(this.#child)) {
      const log = openSync(join(this.folder, 'server.log'), 'a');
      this.#child = spawn(process.execPath, [SERVER_MAIN, ...this.#args], { stdio: ['ignore', log, log] });
      this.#exited = once(this.#child, 'exit');
      closeSync(log);
    }
    await waitUntil(() => this.#isHealthy(), {
      timeoutMs: SETTLE_MS,
      what: 'the server answers and has an engine',
    });
  }

  /** The processes of ours that play this part now; none when it is just being started. */
  pidsOf(target: Target): readonly number[] {
    const all = processes();
    const below = (pid: number): readonly Running[] => all.filter(({ parent }) => parent === pid);
    const supervisor = this.#child?.pid ?? 0;
    // An engine that a supervisor adopted is not a child of it.
    const tini = all.filter(({ command }) => command.startsWith('tini ') && command.includes(this.folder));
    const engine = tini
      .flatMap(({ pid }) => below(pid))
      .filter(({ command }) => command.includes('daemon/main'));
    const helpers = engine.flatMap(({ pid }) => below(pid));
    const found: Readonly<Record<Target, readonly Running[]>> = {
      supervisor: all.filter(({ pid }) => pid === supervisor),
      web: below(supervisor).filter(({ command }) => command.includes(SERVER_MAIN)),
      tini,
      engine,
      'svc-host': helpers.filter(({ command }) => command.endsWith('/svc-host')),
      nft: helpers.filter(({ command }) => command.startsWith('nft -i')),
      resolver: helpers.filter(({ command }) => /\/resolver(-main\.ts|\/main\.js)$/.test(command)),
    };
    return found[target].map(({ pid }) => pid).filter((pid) => pid > 1);
  }

  /** Ends everything and returns what is left of it on this host. */
  async destroy(): Promise<readonly string[]> {
    try {
      if (!(await this.#isHealthy())) await this.launch();
      for (const { id } of await this.engine.listSandboxes()) await this.engine.removeSandbox(id);
    } finally {
      await this.#end();
    }
    const left: string[] = [];
    const isClean = async () => (
      left.splice(0, left.length, ...(await this.#leftovers())),
      left.length === 0
    );
    await waitUntil(isClean, { timeoutMs: 20_000 }).catch(() => undefined);
    const place = join('/run/svc', this.instance);
    await run('umount', ['-R', '-l', place]).catch(() => undefined);
    for (const folder of [place, this.folder])
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    return left;
  }

  async #end(): Promise<void> {
    this.#child?.kill('SIGTERM');
    await this.#exited;
    // One that a supervisor took up may run on.
    for (const pid of this.pidsOf('engine')) process.kill(pid, 'SIGTERM');
    await waitUntil(() => this.pidsOf('tini').length === 0, { what: 'the engine has ended' });
  }

  async #isHealthy(): Promise<boolean> {
    return (await readStatus(this.folder).catch(() => undefined))?.engine.isHealthy === true;
  }

  async #leftovers(): Promise<readonly string[]> {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((path) => path.startsWith(`${this.folder}/`) || path.startsWith(`/run/svc/${this.instance}/`));
    const listed = async (program: string, args: readonly string[], word: string) =>
      (await run(program, [...args])).stdout.split('\n').filter((line) => line.includes(word));
    return [
      ...mounts,
      ...(await listed('ip', ['-o', 'link'], `v${this.instance}-`)),
      ...(await listed('losetup', ['-l', '-n', '-O', 'BACK-FILE'], this.folder)),
      ...(await readdir('/run/netns').catch(() => [])).filter((name) => name.includes(this.instance)),
      ...processes()
        .filter(({ command }) => command.includes(this.folder) || command.includes(this.instance))
        .map(({ pid, command }) => `process ${pid}: ${command}`),
    ];
  }

  /** Distinguishes the interfaces, tables and folders of this engine from those of others. */
  get instance(): string {
    return createHash('sha256').update(this.folder).digest('hex').slice(0, 8);
  }

  async #importBusybox(): Promise<void> {
    const rootfs = await mkdtemp(join(tmpdir(), 'svc-busybox-'));
    try {
      await writeBusyboxRootfs(rootfs);
      await this.engine.images.importImage({ path: rootfs, reference: BUSYBOX });
    } finally {
      await rm(rootfs, { recursive: true, force: true });
    }
  }

  /** The ends of its logs. */
  lastWords(): string {
    const end = (name: string) =>
      readFileSync(join(this.folder, name), 'utf8').split('\n').slice(-LAST_LINES);
    return ['server.log', 'engine.log'].flatMap(end).join('\n');
  }
}

interface Running {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

function processes(): readonly Running[] {
  return globSync('/proc/[0-9]*').flatMap((folder) => {
    try {
      const stat = readFileSync(`${folder}/stat`, 'utf8');
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const command = readFileSync(`${folder}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      // A zombie is the end of a process, not one.
      return state === 'Z' ? [] : [{ pid: Number(folder.slice(6)), parent: Number(parent), command }];
    } catch {
      // It has ended.
      return [];
    }
  });
}

function hasExited({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
