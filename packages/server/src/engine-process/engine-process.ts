import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;
/** An engine that ran this long has started well; the next failure is a new one. */
const HEALTHY_RUN_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;

export interface EngineProcessOptions {
  readonly dataFolder: string;
  readonly command: readonly [program: string, ...args: string[]];
  readonly logger: Logger;
}

/** Keeps an engine running: one that ends is started again, later each time when it ends at once. */
export class EngineProcess {
  readonly #options: EngineProcessOptions;
  readonly #stop = new AbortController();
  #child: ChildProcess | undefined;
  readonly #over: Promise<void>;

  constructor(options: EngineProcessOptions) {
    this.#options = options;
    this.#over = this.#keepRunning();
  }

  /** Its sandboxes run on. */
  async stop(): Promise<void> {
    this.#stop.abort();
    const child = this.#child;
    child?.kill('SIGTERM');
    const timer = setTimeout(() => child?.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#over;
    clearTimeout(timer);
  }

  async #keepRunning(): Promise<void> {
    const { signal } = this.#stop;
    let retryMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      const startedAt = performance.now();
      await this.#runOnce();
      if (signal.aborted) break;
      if (performance.now() - startedAt > HEALTHY_RUN_MS) retryMs = FIRST_RETRY_MS;
      this.#options.logger.warn({ retryMs }, 'the engine ended; it is started again');
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    }
  }

  async #runOnce(): Promise<void> {
    const { dataFolder, command, logger } = this.#options;
    const [program, ...args] = command;
    try {
      await using log = await open(join(dataFolder, 'engine.log'), 'a', 0o640);
      // SAFETY: no shell; a fixed program with the operator's own options. In a group of its own, so that Ctrl-C in the
      // server's terminal does not reach the runtimes of running sandboxes.
      const child = spawn(program, args, {
        stdio: ['ignore', log.fd, log.fd],
        cwd: '/',
        detached: true,
      });
      this.#child = child;
      await once(child, 'spawn');
      if (this.#stop.signal.aborted) child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    } catch (error) {
      logger.error({ err: error }, 'the engine could not be started');
    } finally {
      this.#child = undefined;
    }
  }
}
