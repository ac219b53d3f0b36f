import { posix } from 'node:path';
import { PlatformError, type ChannelFiles } from '@svc/contract';
import type { CallMetrics } from '../../accounting/call-metrics.ts';
import { explainFileFailure } from '../../files/explain-file-failure.ts';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { Database } from '../../store/database.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { requireRunning, whileRunning } from '../sandboxes/running-sandbox.ts';

/** The operation's name in metrics. */
const OPERATION = 'sandbox.files';

export interface FilePlace {
  readonly namespace: string;
  readonly sandbox: string;
  /** A relative path begins at the working directory of the sandbox. */
  readonly path: string;
}

export interface FileParts {
  readonly database: Database;
  readonly channels: ChannelPool;
  readonly metrics: CallMetrics;
}

/** Files of running sandboxes, addressed by name. The caller's reach to the namespace has been checked. */
export class SandboxFiles {
  readonly #parts: FileParts;

  constructor(parts: FileParts) {
    this.#parts = parts;
  }

  /** @throws PlatformError that names the path */
  async use<T>(
    { namespace, sandbox, path }: FilePlace,
    work: (files: ChannelFiles, path: string) => Promise<T>,
  ): Promise<T> {
    const { database, channels, metrics } = this.#parts;
    const startedAt = performance.now();
    const end = (outcome: string) => metrics.count(OPERATION, outcome, performance.now() - startedAt);
    try {
      const record = await requireRunning(database, namespace, sandbox);
      const absolute = posix.resolve(workdirOf(record), path);
      const result = await whileRunning(sandbox, async () => {
        const channel = await channels.get(record.id);
        try {
          return await work(channel.files, absolute);
        } catch (error) {
          throw await explainFileFailure(channels, record.id, absolute, error);
        }
      });
      end('success');
      return result;
    } catch (error) {
      end(PlatformError.is(error) ? error.code : 'internal');
      throw error;
    }
  }
}

/** Where relative paths begin. */
export function workdirOf({ spec, resolved }: SandboxRecord): string {
  return posix.resolve('/', resolved?.workdir ?? spec.runtime?.workdir ?? '/');
}
