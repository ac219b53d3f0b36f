import { execFile, spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

const SVC = resolve(import.meta.dirname, '../../../svc');
const TIMEOUT_MS = 100_000;

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `svc` as a person would, on a data folder of its own. */
export class CommandLine {
  readonly folder: string;
  /** Engines of tests that run side by side must not share addresses. */
  readonly pool = `10.${randomInt(192, 250)}.${randomInt(0, 64) * 4}.0/22`;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** With an engine that runs and an image `tools` that holds busybox. */
  static async withEngine(): Promise<CommandLine> {
    const line = await CommandLine.withoutEngine();
    try {
      await line.startEngine();
      await line.succeed(['image', 'import', await line.#makeRootfs(), 'tools']);
      return line;
    } catch (error) {
      await line.close();
      throw error;
    }
  }

  static async withoutEngine(): Promise<CommandLine> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-cli-'));
    await chmod(folder, 0o711);
    return new CommandLine(folder);
  }

  async startEngine(more: readonly string[] = []): Promise<void> {
    const options = ['--isolation', 'container', '--address-pool', this.pool];
    await this.succeed([
      'engine',
      'start',
      '--detach',
      '--prepared-slots',
      '1',
      '--prepared-disks',
      '1',
      ...options,
      ...more,
    ]);
  }

  async run(words: readonly string[], input?: string): Promise<Outcome> {
    const child = spawn(SVC, ['--path', this.folder, ...words], { stdio: 'pipe', timeout: TIMEOUT_MS });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit') as Promise<[number | null]>,
    ]);
    return { code, stdout, stderr };
  }

  async succeed(words: readonly string[], input?: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(words, input);
    if (code !== 0) throw new Error(`svc ${words.join(' ')} exited with ${code}: ${stderr}`);
    return stdout;
  }

  /** Ends everything, also after a test that failed half-way. */
  async close(): Promise<void> {
    await this.run(['server', 'stop']);
    await this.run(['engine', 'stop']);
    const instance = createHash('sha256').update(this.folder).digest('hex').slice(0, 8);
    await promisify(execFile)('umount', ['--lazy', `/run/svc/${instance}`]).catch(() => undefined);
    await rm(`/run/svc/${instance}`, { recursive: true, force: true });
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  async #makeRootfs(): Promise<string> {
    const rootfs = join(this.folder, 'tools-rootfs');
    await mkdir(join(rootfs, 'bin'), { recursive: true });
    await cp('/bin/busybox', join(rootfs, 'bin/busybox'));
    for (const tool of ['sh', 'echo', 'cat', 'sleep', 'true', 'env', 'id', 'pwd', 'wc', 'tty', 'stty'])
      await symlink('busybox', join(rootfs, 'bin', tool));
    return rootfs;
  }
}
