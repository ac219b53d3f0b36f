import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RegistryAuth } from '@svc/contract/orchestrator';
import { digestOf } from '../images/digest.ts';
import type { TestImage } from './test-layers.ts';

type Alter = (path: string, body: Buffer) => Buffer;

/**
 * Debian's docker-registry on a loopback port, behind a small proxy that counts requests and can require a password, delay answers
 * or change them.
 */
export class TestRegistry implements AsyncDisposable {
  /** `127.0.0.1:PORT`, for references. */
  readonly host: string;
  /** Requested paths, in order. */
  readonly requests: string[] = [];
  auth: RegistryAuth | null = null;
  /** Layers are answered when this has resolved. */
  gate: Promise<void> = Promise.resolve();
  alter: Alter = (_path, body) => body;
  isReachable = true;
  readonly #layers = new Set<string>();
  readonly #upstream: string;
  readonly #stop: AsyncDisposableStack;

  private constructor(host: string, upstream: string, stop: AsyncDisposableStack) {
    this.host = host;
    this.#upstream = upstream;
    this.#stop = stop;
  }

  static async start(): Promise<TestRegistry> {
    await using undo = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'svc-registry-'));
    undo.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    const upstream = await startUpstream(folder, undo);
    const proxy = createServer().listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    undo.defer(() => close(proxy));
    // A TCP server's address is always an object.
    const { port } = proxy.address() as AddressInfo;
    const registry = new TestRegistry(`127.0.0.1:${port}`, upstream, undo.move());
    // A client with an open request at the end gets a broken connection; that must not fail the test, which is over.
    proxy.on('request', (incoming, answer) => {
      registry.#answer(incoming, answer).catch(() => answer.destroy());
    });
    return registry;
  }

  /** Pushes an image past the proxy and returns the digest of its manifest. */
  async push(repository: string, tag: string, image: TestImage): Promise<string> {
    for (const blob of [image.config, ...image.layers.map(({ blob }) => blob)])
      await this.#pushBlob(repository, blob);
    for (const { digest } of image.layers) this.#layers.add(digest);
    return this.pushManifest(repository, tag, image.manifest, 'application/vnd.oci.image.manifest.v1+json');
  }

  async pushManifest(repository: string, tag: string, manifest: Buffer, mediaType: string): Promise<string> {
    const answer = await fetch(`http://${this.#upstream}/v2/${repository}/manifests/${tag}`, {
      method: 'PUT',
      headers: { 'content-type': mediaType },
      body: new Uint8Array(manifest),
    });
    if (!answer.ok) throw new Error(`the registry refused the manifest: ${await answer.text()}`);
    return digestOf(manifest);
  }

  countOf(fragment: string): number {
    return this.requests.filter((path) => path.includes(fragment)).length;
  }

  async #answer(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const path = incoming.url ?? '/';
    this.requests.push(path);
    if (!this.isReachable) {
      incoming.socket.destroy();
      return;
    }
    if (this.auth !== null && incoming.headers.authorization !== basic(this.auth)) {
      const refusal = JSON.stringify({
        errors: [{ code: 'UNAUTHORIZED', message: 'authentication required' }],
      });
      answer
        .writeHead(401, { 'www-authenticate': 'Basic realm="test"', 'content-type': 'application/json' })
        .end(refusal);
      return;
    }
    if (this.#layers.has(path.split('/').at(-1) ?? '')) await this.gate;
    const { status, headers, body } = await this.#forward(incoming, path);
    const altered = this.alter(path, body);
    answer.writeHead(status, { ...headers, 'content-length': altered.length });
    answer.end(incoming.method === 'HEAD' ? undefined : altered);
  }

  async #forward(incoming: IncomingMessage, path: string) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { accept: incoming.headers.accept ?? '*/*' };
    const options = { method: incoming.method ?? 'GET', headers, agent: false };
    request(`http://${this.#upstream}${path}`, options, resolve).on('error', reject).end();
    const upstream = await promise;
    const chunks: Buffer[] = [];
    for await (const chunk of upstream) chunks.push(chunk as Buffer);
    return { status: upstream.statusCode ?? 500, headers: upstream.headers, body: Buffer.concat(chunks) };
  }

  async #pushBlob(repository: string, blob: Buffer): Promise<void> {
    const start = await fetch(`http://${this.#upstream}/v2/${repository}/blobs/uploads/`, { method: 'POST' });
    const location = new URL(start.headers.get('location') ?? '', `http://${this.#upstream}`);
    location.searchParams.set('digest', digestOf(blob));
    const answer = await fetch(location, { method: 'PUT', body: new Uint8Array(blob) });
    if (!answer.ok) throw new Error(`the registry refused a blob: ${await answer.text()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop.disposeAsync();
  }
}

function basic(auth: RegistryAuth): string {
  return `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
}

/** Starts docker-registry; returns its address. When another process takes the free port first, another port is tried. */
async function startUpstream(folder: string, undo: AsyncDisposableStack): Promise<string> {
  for (let attempt = 1; attempt <= 10; attempt++) {
    const address = `127.0.0.1:${await freePort()}`;
    const name = randomUUID();
    const config = {
      version: 0.1,
      log: { level: 'error', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: join(folder, 'data') } },
      http: { addr: address, headers: { [NAME_HEADER]: [name] } },
    };
    await writeFile(join(folder, 'config.yml'), JSON.stringify(config));
    const child = spawn('docker-registry', ['serve', join(folder, 'config.yml')], { stdio: 'ignore' });
    const isOver = () => child.exitCode !== null || child.signalCode !== null;
    undo.defer(async () => {
      if (isOver()) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    });
    if (await untilAnswering(`http://${address}/v2/`, name, isOver)) return address;
  }
  throw new Error('docker-registry did not start');
}

/** Identifies a registry; another one may listen on the same port. */
const NAME_HEADER = 'x-test-registry';

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** False when it has ended instead. */
async function untilAnswering(url: string, name: string, isOver: () => boolean): Promise<boolean> {
  for (let attempt = 0; attempt < 2400 && !isOver(); attempt++) {
    const isUp = await fetch(url).then(
      ({ ok, headers }) => ok && headers.get(NAME_HEADER) === name,
      () => false,
    );
    if (isUp) return true;
    await delay(25);
  }
  return false;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}
