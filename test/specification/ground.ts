import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Isolation } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { createKey } from '@svc/server/keys';
import { createLocalApiKey, createLocalOrganization, createLocalToken } from '@svc/server/local';
import { connectClient, type TestClient } from '../../packages/server/src/testing/mcp-client.ts';
import { TestServer, type RpcEnvelope } from '../e2e/start-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestRegistry } from '../../packages/engine/src/testing/test-registry.ts';
import { importImages, PRIVATE_IMAGE, pushBusybox } from './images.ts';
import { startResolver } from './resolver.ts';

/** Proofs look into answers in many ways, and name the fields that they expect. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

export interface Parts {
  /** Sent as JSON, or as it is when it is bytes. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: the API key of the organization. Null: none. */
  readonly as?: string | null;
}

/** What a command in a sandbox did. */
export interface Ran {
  readonly exit_code: number;
  readonly output: string;
  readonly error: string;
}

type McpClient = TestClient['client'];

const SVC = resolve(import.meta.dirname, '../../svc');
const RUNNING = '?start=true&wait_for=running&wait_timeout=90';
export const ORGANIZATION = 'acme';
const OWNER = 'owner@acme.example';
export const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

/** A real server that asks for keys, on a real engine of one class, with an organization; what all proofs of a class share. */
export class Ground {
  readonly isolation: Isolation;
  readonly server: TestServer;
  /** Of the organization. */
  readonly key: string;
  /** Of its owner. */
  readonly token: string;
  /** For JSON-RPC, for every namespace. */
  readonly rpcKey: string;
  /** On the host: `shared` may be bound, `disks` holds disk images. */
  readonly folder: string;
  /** Holds `PRIVATE_IMAGE`; asks for a password when it is told to. */
  readonly registry: TestRegistry;
  readonly #undo: AsyncDisposableStack;
  readonly #made = new Map<string, Promise<Json>>();

  private constructor(parts: {
    readonly isolation: Isolation;
    readonly server: TestServer;
    readonly folder: string;
    readonly registry: TestRegistry;
    readonly keys: Keys;
    readonly undo: AsyncDisposableStack;
  }) {
    ({
      isolation: this.isolation,
      server: this.server,
      folder: this.folder,
      registry: this.registry,
    } = parts);
    ({ key: this.key, token: this.token, rpcKey: this.rpcKey } = parts.keys);
    this.#undo = parts.undo;
  }

  static async start(isolation: Isolation): Promise<Ground> {
    await using undo = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'svc-specification-'));
    undo.defer(() => rm(folder, { recursive: true, force: true }));
    await chmod(folder, 0o755);
    for (const name of ['shared', 'disks']) await mkdir(join(folder, name));
    const resolver = undo.use(await startResolver());
    const registry = undo.use(await TestRegistry.start());
    await pushBusybox(registry, PRIVATE_IMAGE);
    const nameserver = ['--nameserver', `${resolver.address}#${resolver.port}`];
    const roots = ['--bind-root', join(folder, 'shared'), '--disk-image-root', join(folder, 'disks')];
    const server = await TestServer.start({
      args: ['--recovery-time', '1', '--preview-domain', 'off', '--network-ceiling', 'all', ...roots],
      engineArgs: ['--isolation', isolation, '--insecure-registry', registry.host, ...nameserver, ...roots],
    });
    undo.defer(() => server.destroy());
    await importImages(server.engine);
    const keys = await makeKeys(server.engine.folder);
    return new Ground({ isolation, server, folder, registry, keys, undo: undo.move() });
  }

  /** What is to be undone when all proofs are over, the latest first. */
  defer(undo: () => Promise<void>): void {
    this.#undo.defer(undo);
  }

  async destroy(): Promise<void> {
    await this.#undo.disposeAsync();
  }

  async rest(method: string, path: string, { body, headers, as = this.key }: Parts = {}): Promise<Reply> {
    const isRaw = body instanceof Uint8Array;
    const response = await fetch(`${this.server.url}/v1${path}`, {
      method,
      headers: {
        ...(as === null ? {} : { authorization: `Bearer ${as}` }),
        ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  /** A name that nothing has yet. */
  fresh(word: string): string {
    return `${word}-${randomUUID().slice(0, 8)}`;
  }

  /** Small, so that many fit; what a proof is about it sends itself. */
  bodyOf(more: object = {}): Record<string, unknown> {
    return {
      name: this.fresh('box'),
      image: { type: 'oci', reference: BUSYBOX },
      resources: { memory_mib: 64, disk_size_mib: 64 },
      ...more,
    };
  }

  async create(more: object = {}, query = ''): Promise<Reply> {
    return await this.rest('POST', `/sandboxes${query}`, { body: this.bodyOf(more) });
  }

  /** The record of a sandbox that runs. */
  async running(more: object = {}): Promise<Json> {
    const { status, body } = await this.create(more, RUNNING);
    assert.deepEqual([status, body.status], [200, 'running'], JSON.stringify(body));
    return body;
  }

  /** One that several proofs look at: it is made for the first of them. */
  async shared(name: string, make: () => Promise<Json>): Promise<Json> {
    const made = this.#made.get(name) ?? make();
    this.#made.set(name, made);
    return await made;
  }

  async get(id: string): Promise<Json> {
    return (await this.rest('GET', `/sandboxes/${id}`)).body;
  }

  async until(id: string, status: string): Promise<Json> {
    let seen: Json;
    const look = async () => (seen = await this.get(id)).status === status;
    await waitUntil(look, { timeoutMs: 60_000, what: `${id} is ${status}` }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(seen)}`);
    });
    return seen;
  }

  async wait(condition: () => Promise<boolean>, what: string): Promise<void> {
    await waitUntil(condition, { timeoutMs: 60_000, what });
  }

  async untilEngineForgot(id: string): Promise<void> {
    const { client } = this.server.engine;
    const isGone = async () => !(await client.listSandboxes()).some((known) => known.id === id);
    await this.wait(isGone, `the engine has nothing of ${id}`);
  }

  async stop(id: string): Promise<Json> {
    const { status, body } = await this.rest('POST', `/sandboxes/${id}/stop`);
    assert.equal(status, 200, JSON.stringify(body));
    return await this.until(id, 'stopped');
  }

  async remove(id: string): Promise<void> {
    const { status, body } = await this.rest('DELETE', `/sandboxes/${id}`);
    assert.equal(status, 200, JSON.stringify(body));
  }

  /** What a create with these fields is refused with. Nothing may be left of it. */
  async refusal(more: object): Promise<Json> {
    const name = this.fresh('refused');
    const { status, body } = await this.create({ name, ...more });
    assert.equal(status, 400, `it was not refused: ${status} ${JSON.stringify(body)}`);
    assert.equal((await this.rest('GET', `/sandboxes/by-name/${name}`)).status, 404);
    return body.error;
  }

  /** Runs a script in a sandbox of the organization, with the sandbox's own user, folder and environment. */
  async sh(box: { readonly name: string }, script: string): Promise<Ran> {
    const params = { sandbox: box.name, namespace: ORGANIZATION, command: '/bin/sh', args: ['-c', script] };
    const { result, error } = await this.rpc('sandbox.command.run', params);
    assert.equal(error, undefined, JSON.stringify(error));
    return result as Ran;
  }

  /** What a script prints. */
  async seen(box: { readonly name: string }, script: string): Promise<string> {
    const { output, error, exit_code: code } = await this.sh(box, script);
    assert.equal(code, 0, `${script}: ${error}`);
    return output.trimEnd();
  }

  async rpc(method: string, params: object, as: string | null = this.rpcKey): Promise<RpcEnvelope> {
    return (await this.postRpc({ jsonrpc: '2.0', id: '1', method, params }, as)).body;
  }

  async postRpc(
    body: unknown,
    as: string | null = this.rpcKey,
  ): Promise<{ readonly status: number; readonly body: RpcEnvelope }> {
    return await this.server.post(body, as === null ? {} : { authorization: `Bearer ${as}` });
  }

  /** Does something as the official client, with the key for every namespace. */
  async asMcp<T>(act: (client: McpClient) => Promise<T>): Promise<T> {
    await using undo = new AsyncDisposableStack();
    const ending = { after: (end?: unknown) => void (typeof end === 'function' && undo.defer(() => end())) };
    const { client } = await connectClient(ending, this.server.url, {
      authorization: `Bearer ${this.rpcKey}`,
    });
    return await act(client);
  }

  /** `svc` on the data folder of this server; the environment may name the server and a key. */
  async cli(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    return await this.svc([...words, '--path', this.server.engine.folder], env);
  }

  spawn(words: readonly string[]): ChildProcess {
    return spawn(SVC, words, { env: { PATH: process.env['PATH'] ?? '', HOME: this.folder }, stdio: 'pipe' });
  }

  /** @returns what it prints @throws when its exit code is not 0 */
  async svc(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    const { stdout } = await promisify(execFile)(SVC, words, {
      env: { PATH: process.env['PATH'] ?? '', HOME: this.folder, ...env },
      timeout: 110_000,
    });
    return stdout;
  }

  /** Kills the engine; returns when the server knows. */
  async loseEngine(): Promise<void> {
    // So that it does not start another one, which is what it is there for.
    process.kill(this.server.pid, 'SIGSTOP');
    this.defer(() => Promise.resolve(void process.kill(this.server.pid, 'SIGCONT')));
    await this.server.engine.kill();
    const isKnown = async () => (await this.rest('POST', `/sandboxes/${UNKNOWN_ID}/stop`)).status === 502;
    await waitUntil(isKnown, { what: 'the server sees that the engine is gone' });
  }

  async regainEngine(): Promise<void> {
    await this.server.engine.launch();
    process.kill(this.server.pid, 'SIGCONT');
    const isKnown = async () => (await this.rest('POST', `/sandboxes/${UNKNOWN_ID}/stop`)).status === 404;
    await waitUntil(isKnown, { what: 'the server sees that the engine is back' });
  }
}

interface Keys {
  readonly key: string;
  readonly token: string;
  readonly rpcKey: string;
}

async function makeKeys(dataFolder: string): Promise<Keys> {
  const place = { dataFolder };
  await createLocalOrganization(place, { slug: ORGANIZATION, owner: OWNER });
  const { secret: key } = await createLocalApiKey(place, ORGANIZATION, { name: 'proof' });
  const { secret: token } = await createLocalToken(place, OWNER, { name: 'proof' });
  const { key: rpcKey } = await createKey(dataFolder, {});
  return { key, token, rpcKey };
}

/** What an error of JSON-RPC says beside its message. */
export function dataOf({ error }: { readonly error: RpcEnvelope['error'] | undefined }): Json {
  return error?.data ?? {};
}
