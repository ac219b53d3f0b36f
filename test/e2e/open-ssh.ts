import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Outcome {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

const TIMEOUT_MS = 100_000;

/** OpenSSH's own programs with a folder of their own: files of the user who runs the tests are neither read nor written. */
export class OpenSsh {
  readonly folder: string;
  readonly port: number;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  static async create(port: number): Promise<OpenSsh> {
    return new OpenSsh(await mkdtemp(join(tmpdir(), 'svc-openssh-')), port);
  }

  async destroy(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  /** Makes a pair; returns the public line. */
  async makeKey(name: string, type = 'ed25519'): Promise<string> {
    const path = join(this.folder, name);
    const made = await finish(spawn('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', name, '-f', path]));
    if (made.code !== 0) throw new Error(`ssh-keygen: ${made.stderr}`);
    return await readFile(`${path}.pub`, 'utf8');
  }

  /** Options that every program takes. */
  options(key: string): string[] {
    const settings = {
      IdentityFile: join(this.folder, key),
      IdentitiesOnly: 'yes',
      IdentityAgent: 'none',
      BatchMode: 'yes',
      StrictHostKeyChecking: 'accept-new',
      UserKnownHostsFile: join(this.folder, 'known_hosts'),
      GlobalKnownHostsFile: '/dev/null',
      LogLevel: 'ERROR',
    };
    return [
      '-F',
      '/dev/null',
      ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    ];
  }

  start(program: 'ssh' | 'sftp' | 'scp', key: string, args: readonly string[]): ChildProcess {
    const port = program === 'ssh' ? '-p' : '-P';
    const all = [...this.options(key), port, String(this.port), ...args];
    return spawn(program, all, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, TERM: 'xterm-256color' },
    });
  }

  async run(
    program: 'ssh' | 'sftp' | 'scp',
    key: string,
    args: readonly string[],
    input: string | Buffer = '',
  ): Promise<Outcome> {
    const child = this.start(program, key, args);
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
    return await finish(child);
  }
}

/** Exits or is killed; a hanging client is a failure, not a hanging test. */
export async function finish(child: ChildProcess): Promise<Outcome> {
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() };
}
