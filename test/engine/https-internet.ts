import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Network } from '@svc/contract';
import type { Isolation } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import type { EngineEvent } from '@svc/engine/client';
import { inNamespace } from '../../packages/engine/src/testing/command.ts';
import { startInternet, type Internet } from '../../packages/engine/src/testing/internet.ts';
import type { Mirror } from '../../packages/engine/src/testing/serve-mirror.ts';
import { copyProgram } from './interpreter-images.ts';
import { importChanged } from './image-fixture.ts';
import { startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const SERVER = fileURLToPath(new URL('../../packages/engine/src/testing/https-main.ts', import.meta.url));
/** busybox with curl and Node. */
export const CLIENTS_IMAGE = 'svc/clients';
export const VALUE = 'sk-live-4711-real';
export const PLACEHOLDER = '$MSB_API_KEY';
/** The host that may get the secret, and hosts that may be reached without it. The name with `h2` speaks HTTP/2. */
export const [API, EVIL, EVIL_HTTP2] = ['api.public.example', 'evil.public.example', 'h2.public.example'];

export interface Request {
  readonly name: string;
  readonly said: string;
}

type Report =
  | Request
  | { readonly certificate: string }
  | { readonly name: string; readonly begun: string }
  | { readonly datagram: string };

/** An engine, and hosts on the other side that report their requests. */
export class HttpsInternet implements AsyncDisposable {
  readonly internet: Internet;
  readonly engine: TestEngine;
  /** Requests that came whole. */
  readonly requests: Request[] = [];
  /** Name, method and path of requests that began to come. */
  readonly begun: string[] = [];
  readonly datagrams: string[] = [];
  readonly events: EngineEvent[] = [];
  #certificate = '';
  readonly #undo: AsyncDisposableStack;

  private constructor(internet: Internet, engine: TestEngine, undo: AsyncDisposableStack) {
    this.internet = internet;
    this.engine = engine;
    this.#undo = undo;
  }

  /** With a mirror its hosts serve that too; `fill` makes the image that clients start from. */
  static async start(mirror: Mirror | null = null, fill = addCurlAndNode): Promise<HttpsInternet> {
    await using undo = new AsyncDisposableStack();
    const internet = undo.use(await startInternet());
    const engine = await TestEngine.start({ args: ['--nameserver', internet.resolver] });
    undo.defer(() => engine.destroy());
    await importChanged(engine, CLIENTS_IMAGE, fill);
    const made = new HttpsInternet(internet, engine, undo.move());
    await made.#listen(mirror === null ? [] : [mirror.folder, mirror.password]);
    return made;
  }

  async #listen(served: readonly string[]): Promise<void> {
    const line = inNamespace(this.internet.namespace, process.execPath, SERVER, ...served);
    const child = spawn(line[0], line.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#undo.defer(() => void child.kill('SIGKILL'));
    createInterface({ input: child.stdout }).on('line', (text) => this.#record(JSON.parse(text) as Report));
    await waitUntil(() => this.#certificate !== '');
    const over = new AbortController();
    this.#undo.defer(() => over.abort());
    void (async () => {
      for await (const event of this.engine.client.events({}, over.signal)) this.events.push(event);
    })().catch(() => undefined);
  }

  #record(report: Report): void {
    if ('certificate' in report) this.#certificate = report.certificate;
    else if ('begun' in report) this.begun.push(`${report.name} ${report.begun}`);
    else if ('datagram' in report) this.datagrams.push(report.datagram);
    else this.requests.push(report);
  }

  forget(): void {
    this.requests.length = 0;
    this.begun.length = 0;
    this.datagrams.length = 0;
  }

  requestsTo(name: string): readonly Request[] {
    return this.requests.filter((request) => request.name === name);
  }

  network(more: Partial<Network> = {}, entry: object = {}): Network {
    const secret = {
      env_var: 'API_KEY',
      placeholder: PLACEHOLDER,
      allowed_hosts: [{ type: 'exact' as const, value: API }],
      ...entry,
    };
    return { tls: { upstream_ca_cert: [this.#certificate] }, secrets: { entries: [secret] }, ...more };
  }

  async startClient(isolation: Isolation, given: Network): Promise<TestSandbox> {
    const secretValues = (given.secrets?.entries ?? []).length > 0 ? { API_KEY: VALUE } : {};
    const image = { type: 'oci', reference: CLIENTS_IMAGE } as const;
    return await startSandbox(this.engine, isolation, { image, network: given }, { secretValues });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }
}

export async function addCurlAndNode(root: string): Promise<void> {
  await copyProgram(root, process.execPath, 'node');
  await copyProgram(root, '/usr/bin/curl', 'curl');
}
