import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import ssh2, { type Client, type ClientChannel, type ConnectConfig } from 'ssh2';
import { FakeOrchestrator } from './fake-orchestrator.ts';
import type { Database } from '../store/database.ts';
import { insertSandbox } from '../store/new-sandbox.ts';
import { openStore } from '../store/open-store.ts';
import { ensureOrganization, putMember } from '../store/organizations.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { addSshKey } from '../store/ssh-keys.ts';
import { ensureUser } from '../store/users.ts';
import { makeFolder } from './test-server.ts';
import { makeEd25519Pair } from '../transports/ssh/ed25519-pair.ts';
import { parsePublicKey } from '../access/ssh-public-key.ts';
import { startSshGateway } from '../transports/ssh/ssh-gateway.ts';
import { DEFAULT_SSH_SETTINGS, type SshSettings } from '../transports/ssh/ssh-settings.ts';

export interface TestGateway {
  readonly database: Database;
  readonly orchestrator: FakeOrchestrator;
  readonly port: number;
  readonly organizationId: string;
  /** Adds a member with a registered key; returns the private key. */
  addMember(
    email: string,
    organization?: string,
  ): Promise<{ readonly privateKey: string; readonly keyId: string }>;
  addSandbox(slug: string, isStopped?: boolean, shell?: string): Promise<string>;
  connect(config: ConnectConfig): Promise<Client>;
}

/** The gateway alone over a real store, with the fake orchestrator. Everything is removed after the test. */
export async function startTestGateway(
  t: TestContext,
  settings: Partial<SshSettings> = {},
): Promise<TestGateway> {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const database = await openStore(sqliteDialect(join(folder, 'store.db')));
  const gateway = await startSshGateway({
    database,
    orchestrator,
    serverFolder: folder,
    settings: { ...DEFAULT_SSH_SETTINGS, host: '127.0.0.1', port: 0, ...settings },
    logger: pino({ level: 'silent' }),
  });
  t.after(async () => {
    await gateway.close();
    await database.destroy();
  });
  const organizationId = await ensureOrganization(database, 'acme');
  return {
    database,
    orchestrator,
    port: gateway.place.port,
    organizationId,
    addMember: (email, organization = 'acme') => addMember(database, email, organization),
    addSandbox: (slug, isStopped = false, shell) =>
      addSandbox(database, orchestrator, organizationId, { slug, isStopped, shell }),
    connect: async (config) => {
      const client = new ssh2.Client();
      t.after(() => client.destroy());
      // Errors before it is ready are reported by the wait for that.
      client.on('error', () => undefined);
      const closed = once(client, 'close').then(() => Promise.reject(new Error('the connection was closed')));
      closed.catch(() => undefined);
      const ready = Promise.race([once(client, 'ready'), closed]);
      const place = { host: '127.0.0.1', port: gateway.place.port };
      client.connect({ readyTimeout: 60_000, ...place, ...config });
      await ready;
      return client;
    },
  };
}

export interface Ran {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function openExec(client: Client, command: string): Promise<ClientChannel> {
  return await new Promise((resolve, reject) => {
    client.exec(command, (error, channel) => (error === undefined ? resolve(channel) : reject(error)));
  });
}

export async function run(client: Client, command: string, input = ''): Promise<Ran> {
  const { promise, resolve, reject } = Promise.withResolvers<Promise<Ran>>();
  client.exec(command, (error, channel) => {
    if (error !== undefined) return reject(error);
    channel.end(input);
    // In this turn of the event loop: a quick end comes in the same packet as the beginning.
    resolve(collect(channel));
  });
  return await promise;
}

async function collect(channel: ClientChannel): Promise<Ran> {
  let stdout = '';
  let stderr = '';
  let end: Pick<Ran, 'code' | 'signal'> = { code: null, signal: null };
  channel.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  channel.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  channel.on('exit', (code: number | null, signal?: string) => (end = { code, signal: signal ?? null }));
  await once(channel, 'close');
  return { ...end, stdout, stderr };
}

async function addMember(database: Database, email: string, organization: string) {
  const user = await ensureUser(database, email);
  await putMember(database, await ensureOrganization(database, organization), user.id, 'member');
  const { privateKey, publicKey } = makeEd25519Pair();
  const { line, fingerprint } = parsePublicKey(publicKey);
  const key = await addSshKey(database, { userId: user.id, name: email, publicKey: line, fingerprint });
  return { privateKey, keyId: key?.id ?? '' };
}

async function addSandbox(
  database: Database,
  orchestrator: FakeOrchestrator,
  organizationId: string,
  { slug, isStopped, shell }: { slug: string; isStopped: boolean; shell: string | undefined },
): Promise<string> {
  const id = randomUUID();
  const runtime = shell === undefined ? {} : { runtime: { shell } };
  const spec = { image: { type: 'oci', reference: 'x' }, ...runtime } as const;
  await database.transaction().execute(async (transaction) => {
    await insertSandbox(transaction, {
      id,
      organizationId,
      name: `box-${slug}`,
      slug,
      spec,
      ports: [],
      isolation: null,
      snapshotId: null,
      secrets: null,
      volumes: [],
      isWantedRunning: false,
      requestedBy: null,
    });
  });
  await orchestrator.create({ id, spec }, () => undefined, new AbortController().signal);
  if (!isStopped) await orchestrator.start(id);
  return id;
}
