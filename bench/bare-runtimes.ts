import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeBusyboxRootfs } from '../packages/engine/src/testing/test-images.ts';

type BareName = 'runc' | 'runsc';

const run = promisify(execFile);
const RUNSC = process.env['SVC_RUNSC'] ?? '/opt/svc/bin/runsc';
const GREETING = ['/bin/echo', 'x'];
/** Like the engine's own: no host setting of the network is visible to runsc, which refuses to start otherwise. */
const COVER_NET_SETTINGS = 'mount -t tmpfs -o ro,size=4k none /proc/sys/net && exec "$@"';

/**
 * The baselines: the runtimes' own command lines on the image of our sandboxes, with the same namespaces and only the settings of
 * `runc spec`: no seccomp filter, no network, no limits, no disk.
 */
export class BareRuntimes {
  readonly #folder: string;
  readonly #idle: { readonly name: BareName; readonly id: string }[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** `programs`: what is in /bin beside the shell's, by name. */
  static async prepare(programs: Readonly<Record<string, Uint8Array>> = {}): Promise<BareRuntimes> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
    // Root inside is another user on the host, who needs search permission.
    await chmod(folder, 0o711);
    const rootfs = join(folder, 'rootfs');
    await mkdir(rootfs);
    await writeBusyboxRootfs(rootfs);
    for (const [name, program] of Object.entries(programs))
      await writeFile(join(rootfs, 'bin', name), program, { mode: 0o755 });
    await writeBundle(join(folder, 'greeting'), rootfs, GREETING);
    await writeBundle(join(folder, 'idle'), rootfs, ['/bin/sleep', '100000']);
    return new BareRuntimes(folder);
  }

  /** Milliseconds from the command to the first byte of output inside. Returns after the cleanup. */
  async run(name: BareName): Promise<number> {
    const verb = ['run', '--bundle', join(this.#folder, 'greeting'), newId()];
    return await untilFirstByte(this.#command(name, verb));
  }

  async bwrap(): Promise<number> {
    const root = ['--ro-bind', join(this.#folder, 'rootfs'), '/', '--proc', '/proc', '--dev', '/dev'];
    return await untilFirstByte(['bwrap', '--unshare-all', ...root, ...GREETING]);
  }

  /** A container that waits, for `exec`. */
  async startIdle(name: BareName): Promise<string> {
    const id = newId();
    this.#idle.push({ name, id });
    const verb = ['run', '--detach', '--bundle', join(this.#folder, 'idle'), id];
    await untilEnd(this.#command(name, verb));
    return id;
  }

  /** From the command to its end. */
  async exec(name: BareName, id: string): Promise<number> {
    const begun = performance.now();
    await untilEnd(this.#command(name, ['exec', id, '/bin/true']));
    return performance.now() - begun;
  }

  /** What a program writes there. */
  async output(name: BareName, id: string, program: readonly string[]): Promise<string> {
    const [command = '', ...words] = this.#command(name, ['exec', id, ...program]);
    return (await run(command, words)).stdout;
  }

  /** How many bytes `dd` with these arguments writes there, read from a pipe. */
  async readStdout(name: BareName, id: string, ddArgs: readonly string[]): Promise<number> {
    const command = this.#command(name, ['exec', id, '/bin/dd', ...ddArgs]);
    const child = start(command, 'pipe');
    let bytes = 0;
    child.stdout?.on('data', (chunk: Buffer) => (bytes += chunk.length));
    await Promise.all([succeeded(child, command), once(child, 'close')]);
    return bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { name, id } of this.#idle) {
      await untilEnd(this.#command(name, ['delete', '--force', id])).catch(() => undefined);
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  #command(name: BareName, verb: readonly string[]): readonly string[] {
    const state = ['--root', join(this.#folder, `${name}-state`)];
    if (name === 'runc') return ['runc', ...state, ...verb];
    const flags = ['--platform=systrap', '--network=sandbox', '--overlay2=none'];
    const covered = ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', COVER_NET_SETTINGS, 'sh'];
    return [...covered, RUNSC, ...state, ...flags, ...verb];
  }
}

/** What `runc spec` proposes, with the user namespace that our sandboxes have and without the cgroup tree that they lack. */
async function writeBundle(folder: string, rootfs: string, args: readonly string[]): Promise<void> {
  await mkdir(folder);
  await run('runc', ['spec', '--bundle', folder]);
  const file = join(folder, 'config.json');
  const config = JSON.parse(await readFile(file, 'utf8')) as OciConfig;
  const ids = [{ containerID: 0, hostID: 1_000_000, size: 65_536 }];
  const edited = {
    ...config,
    process: { ...config.process, terminal: false, args },
    root: { path: rootfs, readonly: true },
    mounts: config.mounts.filter(({ type }) => type !== 'cgroup'),
    linux: {
      ...config.linux,
      namespaces: [...config.linux.namespaces, { type: 'user' }, { type: 'cgroup' }],
      uidMappings: ids,
      gidMappings: ids,
    },
  };
  await writeFile(file, JSON.stringify(edited));
}

interface OciConfig {
  readonly process: object;
  readonly mounts: readonly { readonly type: string }[];
  readonly linux: { readonly namespaces: readonly object[] };
}

function newId(): string {
  return `bench-${randomBytes(6).toString('hex')}`;
}

async function untilFirstByte(command: readonly string[]): Promise<number> {
  const begun = performance.now();
  let first: number | undefined;
  const child = start(command, 'pipe');
  child.stdout?.once('data', () => (first = performance.now() - begun));
  // The exit may be seen before the last output is read.
  await Promise.all([succeeded(child, command), once(child, 'close')]);
  if (first === undefined) throw new Error(`${command.join(' ')} said nothing`);
  return first;
}

async function untilEnd(command: readonly string[]): Promise<void> {
  await succeeded(start(command, 'ignore'), command);
}

/** SAFETY: no shell but the constant one above; a session of its own, so that an interrupt ends the benchmark first. */
function start(command: readonly string[], stdout: 'pipe' | 'ignore'): ChildProcess {
  const [program = '', ...args] = command;
  return spawn(program, args, { stdio: ['ignore', stdout, 'ignore'], detached: true });
}

function succeeded(child: ChildProcess, command: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command.join(' ')} ended with ${code}`));
    });
  });
}
