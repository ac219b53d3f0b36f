import { EngineClient } from '@svc/engine/client';
import type { Logger } from 'pino';
import { createCodeRunner } from './code/code-runner.ts';
import type { ServerConfig } from './config.ts';
import { authenticateNobody, authenticateWithKeys, type Authenticate } from './dispatch/authenticate.ts';
import { verifyKey } from './keys/keys.ts';
import { ensureSigningKey, resetSigningKey } from './keys/signing-key.ts';
import { LocalOrchestrator } from './orchestrator/local-orchestrator.ts';
import { alreadyRunning } from './process/already-running.ts';
import { lockDataFolder } from './process/data-folder-lock.ts';
import { startServer } from './server.ts';
import type { Database } from './store/database.ts';
import { forgetKeys } from './store/keys.ts';
import { openDatabase } from './store/open-database.ts';
import { openAdminSocket } from './transports/admin/admin-socket.ts';
import { gatherStatus } from './transports/admin/status.ts';

export interface RunningWeb {
  readonly url: string;
  close(): Promise<void>;
}

/** The web-facing process: the store, the transports and the way to the engine. @throws when it cannot start */
export async function startWeb(config: ServerConfig, logger: Logger): Promise<RunningWeb> {
  await using undo = new AsyncDisposableStack();
  const lock = await lockDataFolder(config.dataFolder, 'web');
  if (lock === undefined) throw alreadyRunning(config.dataFolder);
  undo.defer(() => lock.release());
  const database = await openDatabase(config, logger);
  undo.defer(() => database.destroy());
  const orchestrator = new LocalOrchestrator(new EngineClient({ socketPath: config.engineSocket }));
  const openChannel = (id: string, signal: AbortSignal) => orchestrator.openChannel(id, signal);
  const codeRunner = createCodeRunner({ openChannel, logger });
  undo.defer(() => codeRunner.close());
  const authenticate = await chooseAuthentication(config, database);
  const { options, isDev, hasConformanceFixtures } = config;
  const server = await startServer({
    options,
    database,
    orchestrator,
    codeRunner,
    authenticate,
    logger,
    hasConformanceFixtures,
  });
  undo.defer(() => server.close());
  const { url, health } = server;
  const startedAt = new Date().toISOString();
  const status = () => gatherStatus({ url, isDev, startedAt, database, orchestrator, health });
  const admin = await openAdminSocket(config.serverFolder, status, logger);
  undo.defer(() => admin.close());
  logger.info({ url, isDev, pid: process.pid, uid: process.getuid?.() }, 'the server listens');
  const parts = undo.move();
  return { url, close: () => parts.disposeAsync() };
}

async function chooseAuthentication(
  { serverFolder, isDev, shouldResetKey }: ServerConfig,
  database: Database,
): Promise<Authenticate> {
  const signingKey = shouldResetKey
    ? await resetSigningKey(serverFolder)
    : await ensureSigningKey(serverFolder);
  if (shouldResetKey) await forgetKeys(database);
  return isDev ? authenticateNobody : authenticateWithKeys((key) => verifyKey(signingKey, key));
}
