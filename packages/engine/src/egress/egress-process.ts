import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { LISTENER_DESCRIPTOR, type EgressConfig, type EgressReport } from './egress-messages.ts';
import type { Violation } from './secrets/blocked-request.ts';
import { endRecordedProcess, findRecordedProcess, recordProcess } from './recorded-process.ts';

export interface EgressOptions extends EgressConfig {
  /** svc-host, which opens the proxy's socket. */
  readonly hostProgram: string;
  /** Remembers the process, so that the next engine can end it. */
  readonly recordFile: string;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Where Node keeps compiled code; null: nowhere. */
  readonly codeCache: string | null;
  /** Queries are to be sent to this port from now on. Called again whenever the process was replaced. */
  readonly onListening: (port: number) => Promise<void>;
}

const MAIN = fileURLToPath(new URL('egress-main.ts', import.meta.url));
const START_DEADLINE_MS = 15_000;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** A process that lived this long was fine; the next failure starts the delays anew. */
const HEALTHY_AFTER_MS = 30_000;
const MAX_HEAP_MIB = 128;

/**
 * SAFETY: no shell; the arguments are ours. Of root's powers the child keeps what it needs to read its own program and
 * to become somebody else, and nothing it starts could gain any back.
 */
const CONFINE = [
  '--no-new-privs',
  '--inh-caps=-all',
  '--bounding-set=-all,+setuid,+setgid,+dac_read_search',
  '--',
];

/** Keeps one egress process running: starts it, replaces it with growing delays when it dies, ends it. */
export class EgressProcess {
  readonly #options: EgressOptions;
  #child: ChildProcess | null = null;
  #delayMs = FIRST_DELAY_MS;
  #retry: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(options: EgressOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when queries are answered: by the process of an earlier engine if it still runs, which is then replaced by the way. */
  async start(): Promise<void> {
    const earlier = await findRecordedProcess(this.#options.recordFile);
    if (earlier === null) return await this.#launch();
    await this.#options.onListening(earlier.port);
    this.#launchInBackground();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#retry !== null) clearTimeout(this.#retry);
    const child = this.#child;
    this.#child = null;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await endRecordedProcess(this.#options.recordFile);
  }

  async #launch(): Promise<void> {
    const child = this.#spawn();
    this.#child = child;
    const startedAt = performance.now();
    child.once('exit', (code, signal) => this.#replace(child, performance.now() - startedAt, code ?? signal));
    try {
      const port = await whenListening(child);
      if (this.#isClosed) return;
      await this.#options.onListening(port);
      await endRecordedProcess(this.#options.recordFile);
      await recordProcess(this.#options.recordFile, child.pid, port);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  /** A failed start ends the process, and its `exit` plans the next attempt. */
  #launchInBackground(): void {
    this.#launch().catch((error: unknown) => {
      if (!this.#isClosed) this.#options.logger.warn({ error }, 'The egress process did not start');
    });
  }

  #spawn(): ChildProcess {
    const { listenAddress, hostId, resolvers, hostProgram, logger, codeCache } = this.#options;
    const listen = ['--listen', listenAddress, String(LISTENER_DESCRIPTOR)];
    const child = spawn(
      hostProgram,
      [...listen, 'setpriv', ...CONFINE, process.execPath, `--max-old-space-size=${MAX_HEAP_MIB}`, MAIN],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        // A signal to the engine's terminal is not meant for it.
        detached: true,
        cwd: '/',
        env: {
          PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
          ...(codeCache === null ? {} : { NODE_COMPILE_CACHE: codeCache }),
        },
      },
    );
    child.on('error', (error) => logger.warn({ error }, 'The egress process cannot be started'));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      logger.warn({ output: text.slice(0, 2000) }, 'The egress process complained');
    });
    child.on('message', (report: EgressReport) => {
      if (report.kind === 'failed') logger.warn({ reason: report.reason }, 'The egress process failed');
      if (report.kind === 'violation') logViolation(logger, report.client, report.violation);
    });
    const config: EgressConfig = { listenAddress, hostId, resolvers };
    child.send(config, () => undefined);
    return child;
  }

  #replace(child: ChildProcess, livedMs: number, cause: number | string | null): void {
    if (this.#isClosed || this.#child !== child) return;
    this.#child = null;
    if (livedMs > HEALTHY_AFTER_MS) this.#delayMs = FIRST_DELAY_MS;
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(LONGEST_DELAY_MS, delayMs * 2);
    this.#options.logger.warn(
      { cause, delayMs },
      'The egress process ended; sandboxes have no DNS until it is back',
    );
    this.#retry = setTimeout(() => this.#launchInBackground(), delayMs);
  }
}

/** A value is never part of it. */
function logViolation(logger: EgressOptions['logger'], client: string, violation: Violation): void {
  if (violation.action === 'block') return;
  logger.warn({ client, ...violation }, 'A request with the placeholder of a secret was stopped');
}

async function whenListening(child: ChildProcess): Promise<number> {
  const signal = AbortSignal.timeout(START_DEADLINE_MS);
  const exited = once(child, 'exit', { signal }).then(() => {
    throw new Error('The egress process ended before it listened; see the log');
  });
  const [report] = (await Promise.race([once(child, 'message', { signal }), exited])) as [EgressReport];
  if (report.kind === 'failed') throw new Error(`The egress process failed: ${report.reason}`);
  if (report.kind !== 'listening') throw new Error('The egress process spoke before it listened');
  return report.port;
}
