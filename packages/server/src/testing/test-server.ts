import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { pino, type Logger } from 'pino';
import type { CodeRunner } from '../code/code-runner.ts';
import { authenticateAsDeveloper } from '../access/authenticate.ts';
import { identifyDeveloper } from '../access/principal.ts';
import { withCredentials } from '../access/with-credentials.ts';
import { FakeOrchestrator } from './fake-orchestrator.ts';
import { FakeSnapshotStore } from './fake-snapshot-store.ts';
import type { SnapshotStore } from '../orchestrator/snapshot-store.ts';
import { FakeVolumeStore } from './fake-volume-store.ts';
import type { OrchestratorPorts } from '../orchestrator/ports.ts';
import type { VolumeStore } from '../orchestrator/volume-store.ts';
import { DEFAULT_REST_SETTINGS, type RestSettings } from '../rest-settings.ts';
import { Sealer } from '../secrets/sealer.ts';
import type { ServerOptions, ServerParts } from '../server-parts.ts';
import { startServer, type RunningServer } from '../server.ts';
import type { Database } from '../store/database.ts';
import { openStore } from '../store/open-store.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import type { Tracer } from '../tracing/tracer.ts';
import type { DashboardBuild } from '../transports/dashboard/dashboard-build.ts';
import type { ChannelSettings } from '../transports/channel/register-channel.ts';
import { DEFAULT_LIMITS } from '../transports/http/http-limits.ts';

export interface TestServer extends RunningServer {
  readonly database: Database;
  readonly orchestrator: FakeOrchestrator;
  /** Posts to /api/v1/rpc (or another path) and parses the answer. */
  post(body: unknown, options?: PostOptions): Promise<RpcReply>;
  /** One call; returns the envelope. */
  call(method: string, params: object, options?: PostOptions): Promise<RpcReply['body']>;
  /** A request to the control plane, `path` below /v1; the body is sent as JSON, or as it is when it is bytes. */
  rest(method: string, path: string, options?: RestOptions): Promise<RestReply>;
}

export interface RestOptions {
  /** A bearer credential. */
  readonly key?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RestReply {
  readonly status: number;
  readonly headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests look into answers in many ways, and name the fields they expect.
  readonly body: any;
}

export interface PostOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RpcReply {
  readonly status: number;
  readonly headers: Headers;
  // Tests look into it in many ways.
  readonly body: {
    readonly result?: never;
    readonly error?: { readonly code: number; readonly message: string; readonly data: never };
    readonly id?: unknown;
    readonly jsonrpc?: string;
  };
}

export interface TestServerOptions extends Partial<ServerOptions> {
  /** Absent: development mode. */
  readonly signingKey?: Uint8Array;
  readonly orchestrator?: FakeOrchestrator;
  readonly folder?: string;
  readonly codeRunner?: CodeRunner;
  readonly mcpExtras?: ServerParts['mcpExtras'];
  readonly volumeStore?: VolumeStore;
  /** Instead of those of the fake orchestrator. */
  readonly ports?: OrchestratorPorts;
  readonly snapshotStore?: SnapshotStore;
  readonly restSettings?: Partial<RestSettings>;
  readonly channelSettings?: Partial<ChannelSettings>;
  readonly previewRecheckMs?: number;
  readonly ssh?: ServerParts['ssh'];
  readonly dashboard?: DashboardBuild;
  readonly tracer?: Tracer;
  /** Absent: it says nothing. */
  readonly logger?: Logger;
  /** Absent: SQLite in the folder. The test server closes it. */
  readonly database?: Database;
  /** Absent: unless it was given a database. */
  readonly isAlone?: boolean;
}

/** A whole server on a free port over a real store, with the fake orchestrator. Everything is gone after the test. */
export async function startTestServer(t: TestContext, options: TestServerOptions = {}): Promise<TestServer> {
  const {
    signingKey,
    orchestrator = new FakeOrchestrator(),
    folder = await makeFolder(t),
    ...rest
  } = options;
  const database = options.database ?? (await openStore(sqliteDialect(join(folder, 'store.db'))));
  const server = await startServer({
    options: {
      host: '127.0.0.1',
      port: 0,
      allowedHosts: [],
      corsOrigins: [],
      limits: DEFAULT_LIMITS,
      maxConcurrentCalls: 1024,
      requestsPerMinute: null,
      areE2bPortsPublic: true,
      previews: null,
      ...rest,
    },
    database,
    ...portsOf(orchestrator, rest),
    codeRunner: rest.codeRunner ?? refuseCode,
    sealer: new Sealer([new Uint8Array(32).fill(7)]),
    restSettings: { ...DEFAULT_REST_SETTINGS, ...rest.restSettings },
    isAlone: options.isAlone ?? options.database === undefined,
    channelSettings: rest.channelSettings ?? {},
    ...(rest.mcpExtras === undefined ? {} : { mcpExtras: rest.mcpExtras }),
    ...(rest.ssh === undefined ? {} : { ssh: rest.ssh }),
    ...(rest.dashboard === undefined ? {} : { dashboard: rest.dashboard }),
    ...(rest.tracer === undefined ? {} : { tracer: rest.tracer }),
    ...(rest.previewRecheckMs === undefined ? {} : { previewRecheckMs: rest.previewRecheckMs }),
    ...(signingKey === undefined
      ? { authenticate: authenticateAsDeveloper, identify: identifyDeveloper(database), signSession: null }
      : withCredentials(database, signingKey)),
    logger: rest.logger ?? pino({ level: 'silent' }),
  });
  let closing: Promise<void> | undefined;
  const close = async () => await (closing ??= server.close().then(() => database.destroy()));
  t.after(close);
  const post = postTo(server.url);
  return {
    ...server,
    close,
    database,
    orchestrator,
    post,
    rest: restTo(server.url),
    call: async (method, params, postOptions) =>
      (await post({ jsonrpc: '2.0', method, params, id: 'test' }, postOptions)).body,
  };
}

function portsOf(orchestrator: FakeOrchestrator, options: TestServerOptions): OrchestratorPorts {
  const { volumeStore = new FakeVolumeStore(), snapshotStore = new FakeSnapshotStore(), ports } = options;
  return ports ?? { orchestrator, imageStore: orchestrator, nodes: orchestrator, volumeStore, snapshotStore };
}

export async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-server-'));
  // What is started later ends later: it may still write while the folder is removed.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  return folder;
}

function postTo(url: string) {
  return async (
    body: unknown,
    { path = '/api/v1/rpc', headers = {} }: PostOptions = {},
  ): Promise<RpcReply> => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const parsed = text === '' ? undefined : (JSON.parse(text) as RpcReply['body']);
    return { status: response.status, headers: response.headers, body: parsed ?? {} };
  };
}

function restTo(url: string) {
  return async (method: string, path: string, options: RestOptions = {}): Promise<RestReply> => {
    const { key, body, headers = {} } = options;
    const isRaw = body instanceof Uint8Array || typeof body === 'string';
    const response = await fetch(`${url}/v1${path}`, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    const parsed: unknown = isJson ? JSON.parse(bytes.toString()) : bytes;
    return { status: response.status, headers: response.headers, body: parsed };
  };
}

const refuseCode: CodeRunner = {
  run: async () => await Promise.reject(new Error('this test runs no code')),
  forget: () => undefined,
};

/** Lists are in the order of time; what is made in the same millisecond comes in any order. */
export async function nextMillisecond(): Promise<void> {
  for (const now = Date.now(); Date.now() === now;) await setImmediate();
}
