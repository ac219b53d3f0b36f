import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const START_MS = 10_000;

/** The baseline of remote shells: OpenSSH's server on a loopback port, for one key that exists as long as it runs. */
export class OpenSshServer implements AsyncDisposable {
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #port: number;

  private constructor(folder: string, child: ChildProcess, port: number) {
    this.#folder = folder;
    this.#child = child;
    this.#port = port;
  }

  static async start(): Promise<OpenSshServer> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-bench-sshd-'));
    const port = await freePort();
    for (const name of ['host', 'client'])
      await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name)]);
    // The folder for privilege separation; its package creates it at every boot.
    await mkdir('/run/sshd', { recursive: true, mode: 0o755 });
    const settings = [
      `ListenAddress 127.0.0.1:${port}`,
      `HostKey ${join(folder, 'host')}`,
      `AuthorizedKeysFile ${join(folder, 'client.pub')}`,
      'StrictModes no',
      'PermitRootLogin prohibit-password',
      'PasswordAuthentication no',
      'UsePAM no',
      'PrintMotd no',
      'PidFile none',
    ];
    await writeFile(join(folder, 'config'), `${settings.join('\n')}\n`, { mode: 0o600 });
    // SAFETY: on loopback alone, and only for the key that was just made.
    const child = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', join(folder, 'config')], { stdio: 'ignore' });
    const server = new OpenSshServer(folder, child, port);
    try {
      await server.#answers();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The arguments of `ssh` that lead here. */
  get place(): readonly string[] {
    const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
    const key = ['-F', 'none', '-i', join(this.#folder, 'client'), '-p', String(this.#port)];
    return [...options.flatMap((option) => ['-o', option]), ...key, `${userInfo().username}@127.0.0.1`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM');
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #answers(): Promise<void> {
    const deadline = performance.now() + START_MS;
    for (;;) {
      try {
        await run('ssh', [...this.place, 'true']);
        return;
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await delay(50);
      }
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
