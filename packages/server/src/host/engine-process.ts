import type { ChildProcess } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { lchown, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  EngineClient,
  findEngine,
  findWrapper,
  readProcessState,
  Watchdog,
  type FoundEngine,
} from '@svc/engine/client';
import type { Logger } from 'pino';
import type { Identity } from './drop-privileges.ts';
import { RestartDelay } from './restart-delay.ts';

const STOP_TIMEOUT_MS = 20_000;
/** How often a process that is not our child is looked at. */
const LOOK_MS = 100;
/** The exit code of an engine that would refuse again. */
const REFUSED = 2;
const LAST_WORDS_BYTES = 8192;

export interface EngineProcessOptions {
  readonly dataFolder: string;
  readonly socketPath: string;
  /** The owner that the socket of an already running engine is given to. */
  readonly owner: Identity;
  readonly command: readonly [program: string, ...args: string[]];
  readonly logger: Logger;
  /** The first engine does not start with these options, and never will. */
  readonly onRefused?: (reason: string) => void;
}

/**
 * Keeps an engine running: one that ends is started again, later each time when it ends at once; one that hangs is killed first. An
 * engine that runs already is taken up and watched like our own.
 */
export class EngineProcess {
  readonly #options: EngineProcessOptions;
  readonly #client: EngineClient;
  readonly #watchdog: Watchdog;
  readonly #stop = new AbortController();
  #child: ChildProcess | undefined;
  #adopted: FoundEngine | undefined;
  readonly #over: Promise<void>;

  constructor(options: EngineProcessOptions) {
    this.#options = options;
    this.#client = new EngineClient({ socketPath: options.socketPath });
    this.#watchdog = new Watchdog({
      ask: (signal) => this.#client.pulse(signal),
      look: async () => {
        const found = await findEngine(options.dataFolder);
        const wrapper = found && findWrapper(found);
        const above = wrapper === undefined ? undefined : readProcessState(wrapper);
        // A frozen tini would not report the end of the engine.
        return above?.state === 'T' ? above : found && readProcessState(found.pid);
      },
      onFrozen: (reason) => {
        options.logger.error({ reason }, 'the engine hangs; it is killed and started again');
        void this.#kill();
      },
    });
    this.#over = this.#keepRunning();
  }

  /** Its sandboxes run on. An engine that no server started runs on too. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#watchdog.close();
    this.#child?.kill('SIGTERM');
    if (this.#adopted?.isSupervised === true) await this.#signal('SIGTERM');
    const timer = setTimeout(() => void this.#kill(), STOP_TIMEOUT_MS);
    await this.#over;
    clearTimeout(timer);
  }

  async #keepRunning(): Promise<void> {
    const { signal } = this.#stop;
    const restartDelay = new RestartDelay();
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const startedAt = performance.now();
      const found = await findEngine(this.#options.dataFolder);
      const ended = found === undefined ? await this.#runOnce() : await this.#follow(found);
      if (signal.aborted) break;
      if (isFirst && ended.code === REFUSED) {
        this.#options.onRefused?.(await this.#lastWords());
        break;
      }
      const retryMs = restartDelay.after(performance.now() - startedAt);
      this.#options.logger.warn({ ...ended, retryMs }, 'the engine ended; it is started again');
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #runOnce(): Promise<Ending> {
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
      return { code: child.exitCode, signal: child.signalCode };
    } catch (error) {
      logger.error({ err: error }, 'the engine could not be started');
      return {};
    } finally {
      this.#child = undefined;
    }
  }

  /** Waits for the end of the engine, or for a stop of this process if the engine is not its child. */
  async #follow(engine: FoundEngine): Promise<Ending> {
    const { owner, socketPath, dataFolder, logger } = this.#options;
    const { signal } = this.#stop;
    this.#adopted = engine;
    let isOurs = false;
    try {
      while ((await findEngine(dataFolder))?.pid === engine.pid) {
        if (signal.aborted && !engine.isSupervised) break;
        if (!isOurs && (await this.#answers())) {
          // SAFETY: in the data folder, which is root's; what reads files of the host is behind root's own socket alone.
          await lchown(socketPath, owner.uid, owner.gid);
          logger.info({ pid: engine.pid, socket: socketPath }, 'an engine runs already; it is taken up');
          isOurs = true;
        }
        await delay(LOOK_MS);
      }
    } finally {
      this.#adopted = undefined;
    }
    return {};
  }

  async #answers(): Promise<boolean> {
    return await this.#client.pulse(AbortSignal.timeout(LOOK_MS)).then(
      () => true,
      () => false,
    );
  }

  /** Why it did not start, as its log has it. */
  async #lastWords(): Promise<string> {
    await using log = await open(join(this.#options.dataFolder, 'engine.log'), 'r');
    const { size } = await log.stat();
    const length = Math.min(size, LAST_WORDS_BYTES);
    const { buffer, bytesRead } = await log.read({ buffer: Buffer.alloc(length), position: size - length });
    const said = buffer
      .subarray(0, bytesRead)
      .toString()
      .matchAll(/^\{"level":60,.*"error":"(?<reason>.*?)","msg"/gm);
    return [...said].at(-1)?.groups?.['reason'] ?? 'its log says why; see: svc engine logs';
  }

  /** The engine itself too, and what stands above one that we did not start: either may hang. */
  async #kill(): Promise<void> {
    const found = await findEngine(this.#options.dataFolder);
    const wrapper = found && findWrapper(found);
    this.#child?.kill('SIGKILL');
    await this.#signal('SIGKILL');
    if (wrapper !== undefined) signalProcess(wrapper, 'SIGKILL');
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const found = await findEngine(this.#options.dataFolder);
    if (found === undefined || readProcessState(found.pid) === undefined) return;
    signalProcess(found.pid, signal);
  }
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended in this moment.
  }
}

interface Ending {
  readonly code?: number | null;
  readonly signal?: string | null;
}
