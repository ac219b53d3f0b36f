import { FairLimit } from '../access/fair-limit.ts';
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Tracer } from '../tracing/tracer.ts';
import { pino } from 'pino';
import { withCredentials } from '../access/with-credentials.ts';
import { FakeOrchestrator } from './fake-orchestrator.ts';
import { createApiKey } from '../store/api-keys-and-tokens.ts';
import type { Database } from '../store/database.ts';
import { insertSandbox } from '../store/new-sandbox.ts';
import { openStore } from '../store/open-store.ts';
import { ensureOrganization } from '../store/organizations.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { makeFolder } from './test-server.ts';
import { createHttpServer } from '../transports/http/create-http-server.ts';
import { Guard } from '../transports/http/guard.ts';
import { DEFAULT_LIMITS } from '../transports/http/http-limits.ts';
import {
  DEFAULT_CHANNEL_SETTINGS,
  registerChannel,
  type ChannelParts,
  type ChannelSettings,
} from '../transports/channel/register-channel.ts';

export interface ChannelServer {
  readonly url: string;
  readonly database: Database;
  readonly orchestrator: FakeOrchestrator;
  /** Adds a running sandbox by default, and a key for its channel. */
  addSandbox(options?: {
    readonly organization?: string;
    readonly isStopped?: boolean;
  }): Promise<{ readonly url: string; readonly sandboxId: string; readonly key: string }>;
  close(): Promise<void>;
}

export interface ChannelServerParts extends Partial<Pick<ChannelParts, 'code' | 'rateLimiter'>> {
  readonly tracer?: Tracer | null;
}

/**
 * The command channel alone, with the options for code, over a real store, with the fake orchestrator. Everything is removed after the
 * test.
 */
export async function startChannelServer(
  t: TestContext,
  settings: Partial<ChannelSettings> = {},
  { tracer = null, code = null, rateLimiter = null }: ChannelServerParts = {},
): Promise<ChannelServer> {
  const orchestrator = new FakeOrchestrator();
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  const logger = pino({ level: 'silent' });
  const guard = new Guard({ host: '127.0.0.1', allowedHosts: [], corsOrigins: [] });
  const http = createHttpServer({ guard, limits: DEFAULT_LIMITS, logger, tracer });
  const { identify } = withCredentials(database, new Uint8Array(32));
  registerChannel(http, {
    database,
    orchestrator,
    identify,
    rateLimiter,
    streams: new FairLimit(4096),
    code,
    settings: { ...DEFAULT_CHANNEL_SETTINGS, ...settings },
    logger,
  });
  await http.listen({ host: '127.0.0.1', port: 0 });
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    await http.close();
    await database.destroy();
  };
  t.after(close);
  const url = `http://127.0.0.1:${(http.server.address() as AddressInfo).port}`;
  return {
    url,
    database,
    orchestrator,
    close,
    addSandbox: async ({ organization = 'acme', isStopped = false } = {}) => {
      const sandboxId = randomUUID();
      const organizationId = await ensureOrganization(database, organization);
      await insert(database, organizationId, sandboxId);
      const spec = { image: { type: 'oci', reference: 'x' } } as const;
      const never = new AbortController().signal;
      await orchestrator.create({ id: sandboxId, spec }, () => undefined, never);
      if (!isStopped) await orchestrator.start(sandboxId);
      const { secret } = await createApiKey(database, organizationId, {
        name: 'test',
        createdBy: null,
        expiresAt: null,
      });
      return { url, sandboxId, key: secret };
    },
  };
}

async function insert(database: Database, organizationId: string, id: string): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await insertSandbox(transaction, {
      id,
      organizationId,
      name: `box-${id}`,
      slug: null,
      spec: { image: { type: 'oci', reference: 'x' } },
      ports: [],
      isolation: null,
      snapshotId: null,
      secrets: null,
      volumes: [],
      isWantedRunning: true,
      requestedBy: null,
    });
  });
}
