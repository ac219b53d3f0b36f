import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { EngineClient, engineCommand } from '@svc/engine/client';
import { writeBusyboxRootfs } from '../../packages/engine/src/testing/test-images.ts';
import { handOnImages, takeOverImages } from './known-images.ts';
import { Warden } from './warden.ts';

const END_ENGINE = fileURLToPath(new URL('end-engine.ts', import.meta.url));
const START_TIMEOUT_MS = 60_000;
/** In the checkout: a process that can change this file can change the tests too. */
const KNOWN_PROBES = fileURLToPath(new URL('../../node_modules/.cache/svc-probes.json', import.meta.url));

export const BUSYBOX = 'svc/busybox';

export interface EngineOptions {
  readonly args?: readonly string[];
  /** Beside the environment of the test. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where its folder is made. */
  readonly parent?: string;
}

/** A real engine on a data folder of its own, with a small image in it. It ends with the process of the test at the latest. */
export class TestEngine {
  readonly folder: string;
  readonly client: EngineClient;
  readonly #args: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #warden: Warden | undefined;

  private constructor(folder: string, { args, env }: Required<Omit<EngineOptions, 'parent'>>) {
    this.folder = folder;
    this.#args = args;
    this.#env = env;
    // Tests are root, who has a socket of its own.
    this.client = new EngineClient({ socketPath: join(folder, 'engine-root.sock') });
  }

  static async start(options: EngineOptions = {}): Promise<TestEngine> {
    const folder = await mkdtemp(join(options.parent ?? tmpdir(), 'svc-engine-'));
    await chmod(folder, 0o711);
    const pool = await claimAddressPool();
    // Tests count what is there; those that are about the adaptive pool give the option again.
    const args = ['--address-pool', pool, '--warm-adaptive', '0', ...(options.args ?? [])];
    const engine = new TestEngine(folder, { args, env: options.env ?? {} });
    try {
      engine.#warden = new Warden([process.execPath, END_ENGINE, folder, ...engine.#args]);
      await engine.#takeOverProbes();
      const isImported = await takeOverImages(folder);
      await engine.launch();
      await engine.#handOnProbes();
      if (!isImported) await engine.importBusybox();
      if (!isImported) await handOnImages(folder);
      return engine;
    } catch (error) {
      await engine.destroy();
      throw error;
    }
  }

  /** What an engine left on its folder whose test is gone. */
  static async destroyOrphaned(folder: string, args: readonly string[]): Promise<void> {
    await new TestEngine(folder, { args, env: {} }).destroy();
  }

  get logFile(): string {
    return join(this.folder, 'engine.log');
  }

  /** Of tini, below which are the engine and what it has started. */
  get wrapperPid(): number {
    return this.#child?.pid ?? 0;
  }

  get pid(): number {
    // The engine is the child of its subreaper.
    const children = readFileSync(`/proc/${this.#child?.pid}/task/${this.#child?.pid}/children`, 'utf8');
    const pid = Number(children.trim().split(' ')[0]);
    // SAFETY: 0 would be everything that runs this test.
    if (!(pid > 1)) throw new Error(`the engine ended: ${this.#lastLog()}`);
    return pid;
  }

  async launch(): Promise<void> {
    const child = this.#spawn();
    this.#child = child;
    await waitUntil(
      async () => {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`the engine ended: ${this.#lastLog()}`);
        return await this.client.capabilities().then(
          () => true,
          () => false,
        );
      },
      { timeoutMs: START_TIMEOUT_MS, what: 'the engine answers' },
    );
    // A test that is over does not wait for it.
    child.unref();
  }

  /**
   * What engines of other tests have found out about the runtimes of this host; hundreds of them would each start a sandbox of every
   * kind for it. Another build, or another start of the host, is probed by the engine all the same.
   */
  async #takeOverProbes(): Promise<void> {
    await copyFile(KNOWN_PROBES, join(this.folder, 'probes.json')).catch(() => undefined);
  }

  async #handOnProbes(): Promise<void> {
    await mkdir(dirname(KNOWN_PROBES), { recursive: true });
    const own = `${KNOWN_PROBES}.${this.instance}`;
    // An engine without a runtime that it could use has none.
    await copyFile(join(this.folder, 'probes.json'), own).then(
      () => rename(own, KNOWN_PROBES),
      () => undefined,
    );
  }

  /** A second engine on the same folder; returns what was logged while it lived. */
  async launchAnother(): Promise<string> {
    const { size } = statSync(this.logFile);
    const child = this.#spawn();
    await new Promise((resolve) => child.once('exit', resolve));
    return readFileSync(this.logFile).subarray(size).toString();
  }

  #spawn(): ChildProcess {
    const [program, ...args] = engineCommand(this.folder, this.#args);
    // The engine writes the file itself: its last words are there when it has ended.
    const log = openSync(this.logFile, 'a');
    try {
      const env = { ...process.env, ...this.#env };
      return spawn(program, args, { stdio: ['ignore', 'ignore', log], detached: true, env });
    } finally {
      closeSync(log);
    }
  }

  async importBusybox(): Promise<void> {
    const rootfs = await mkdtemp(join(tmpdir(), 'svc-busybox-'));
    try {
      await writeBusyboxRootfs(rootfs);
      await this.client.images.importImage({ path: rootfs, reference: BUSYBOX });
    } finally {
      await rm(rootfs, { recursive: true, force: true });
    }
  }

  /** As the kernel would end it: no warning, no clean-up. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.ref();
    process.kill(this.pid, signal);
    await ended;
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.launch();
  }

  /** Removes every sandbox and volume, ends the engine, and takes its folders away. */
  async destroy(): Promise<void> {
    try {
      if (this.#child?.exitCode !== null || this.#child.signalCode !== null) await this.launch();
      for (const sandbox of await this.client.listSandboxes()) await this.client.removeSandbox(sandbox.id);
      for (const volume of await this.client.volumes.listVolumes())
        await this.client.volumes.removeVolume(volume.id);
    } finally {
      await this.stop();
      this.#tellFailures();
      await this.#removeFolders();
    }
    await this.#warden?.dismiss();
  }

  /** What this engine has left on the host: mounts and interfaces. The kernel takes its time with the latter. */
  async leftovers(): Promise<string[]> {
    let left: string[] = [];
    const isClean = async () => (left = await this.#findLeftovers()).length === 0;
    await waitUntil(isClean).catch(() => undefined);
    return left;
  }

  async #findLeftovers(): Promise<string[]> {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((path) => path.startsWith(`${this.folder}/`) || path.startsWith(`${this.runFolder}/`));
    const { stdout } = await promisify(execFile)('ip', ['-o', 'link']);
    const links = stdout.split('\n').filter((line) => line.includes(`v${this.instance}-`));
    return [...mounts, ...links];
  }

  get instance(): string {
    return createHash('sha256').update(this.folder).digest('hex').slice(0, 8);
  }

  get runFolder(): string {
    return join('/run/svc', this.instance);
  }

  async #removeFolders(): Promise<void> {
    await promisify(execFile)('umount', ['-R', '-l', this.runFolder]).catch(() => undefined);
    for (const folder of [this.runFolder, this.folder])
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }

  /** What callers see of them is that the log has them, and the log goes with its folder. */
  #tellFailures(): void {
    const lines = readFileSync(this.logFile, 'utf8').split('\n');
    for (const line of lines.filter((each) => each.includes('"unexpected failure"')))
      process.stderr.write(`${line}\n`);
  }

  #lastLog(): string {
    return readFileSync(this.logFile, 'utf8').split('\n').slice(-5).join('\n');
  }
}

/** Claims a pool of addresses for this process: the socket of its name, held until the process ends, is the lock. */
export async function claimAddressPool(): Promise<string> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const pool = `10.${randomInt(64, 192)}.${randomInt(0, 64) * 4}.0/22`;
    const claim = createServer().unref();
    const isOurs = once(claim, 'listening').then(
      () => true,
      () => false,
    );
    claim.listen(`\0svc-test-pool-${pool}`);
    if (await isOurs) return pool;
  }
  throw new Error('no address pool is free');
}
