import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { EngineClient, findEngine } from '@svc/engine/client';
import { findServer, SERVER_MAIN } from '@svc/server/admin';
import { writeBusyboxRootfs } from '../../packages/engine/src/testing/test-images.ts';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { BUSYBOX } from '../engine/start-engine.ts';

export const SVC = resolve(import.meta.dirname, '../../svc');
const SLOW = { timeoutMs: 120_000 };
const exec = promisify(execFile);

interface Outcome {
  readonly code: number;
  readonly text: string;
}

/** A server with its engine on a folder of its own, as an operator starts them. */
export class SupervisedServer {
  readonly folder: string;
  readonly port: number;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  /** Nothing runs yet. */
  static async prepare(): Promise<SupervisedServer> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-supervised-'));
    await chmod(folder, 0o711);
    return new SupervisedServer(folder, await freePort());
  }

  get runFolder(): string {
    return join('/run/svc', createHash('sha256').update(this.folder).digest('hex').slice(0, 8));
  }

  async svc(...words: readonly string[]): Promise<Outcome> {
    return await exec(SVC, ['--path', this.folder, ...words]).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
        code,
        text: stdout + stderr,
      }),
    );
  }

  get startWords(): readonly string[] {
    return ['--dev', '--port', String(this.port), '--isolation', 'container'];
  }

  async start(...options: readonly string[]): Promise<void> {
    const { code, text } = await this.svc('server', 'start', '--detach', ...this.startWords, ...options);
    assert.equal(code, 0, text);
    await this.untilHealthy();
  }

  async serverPid(): Promise<number> {
    return (await findServer(this.folder)) ?? assert.fail('no server runs');
  }

  async webPid(): Promise<number> {
    const pid = await this.serverPid();
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ');
    for (const child of children) {
      const words = await readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '');
      if (words.includes(SERVER_MAIN)) return Number(child);
    }
    return assert.fail('no web-facing process runs');
  }

  async enginePid(): Promise<number> {
    return (await findEngine(this.folder))?.pid ?? assert.fail('no engine runs');
  }

  async health(): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.port}/api/v1/health`, {
      signal: AbortSignal.timeout(1000),
    }).catch(() => undefined);
    await answer?.body?.cancel();
    return answer?.status ?? 0;
  }

  async untilHealthy(): Promise<void> {
    await waitUntil(async () => (await this.health()) === 200, { ...SLOW, what: 'the server is healthy' });
  }

  async call(method: string, params: object): Promise<{ result?: unknown; error?: { data?: unknown } }> {
    const response = await fetch(`http://127.0.0.1:${this.port}/api/v1/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', method, params, id: 1 }),
    });
    return (await response.json()) as { result?: unknown; error?: { data?: unknown } };
  }

  async log(): Promise<string> {
    return await readFile(join(this.folder, 'server.log'), 'utf8');
  }

  async importBusybox(): Promise<void> {
    const rootfs = await mkdtemp(join(tmpdir(), 'svc-busybox-'));
    await writeBusyboxRootfs(rootfs);
    await this.engine().images.importImage({ path: rootfs, reference: BUSYBOX });
    await rm(rootfs, { recursive: true, force: true });
  }

  engine(): EngineClient {
    return new EngineClient({ socketPath: join(this.folder, 'engine-root.sock') });
  }

  /** Ends and removes everything. */
  async clear(): Promise<void> {
    await this.svc('server', 'stop');
    // An engine that ended in peace, without sandboxes, has taken it along.
    const isLeft = existsSync(this.runFolder);
    if (isLeft && (await this.svc('engine', 'start', '--detach', '--isolation', 'container')).code === 0) {
      for (const { id } of await this.engine().listSandboxes()) await this.engine().removeSandbox(id);
      await this.svc('engine', 'stop');
    }
    await exec('umount', ['-R', '-l', this.runFolder]).catch(() => undefined);
    await rm(this.runFolder, { recursive: true, force: true });
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
