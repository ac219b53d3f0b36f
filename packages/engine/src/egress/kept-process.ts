import type { ChildProcess } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import type { BoundedGroup } from '../cgroup/bounded-group.ts';
import { readProcessState } from '../host/process-state.ts';
import { Watchdog } from '../host/watchdog.ts';
import type { EgressReport, Pin, Ports, ProcessConfig } from './egress-messages.ts';
import { endRecordedProcess, findRecordedProcess, recordProcess } from './recorded-process.ts';

export interface KeptProcessOptions {
  /** For people. */
  readonly name: string;
  /** svc-host, which becomes the program. */
  readonly hostProgram: string;
  /** What it does first, each word an argument: opening sockets for instance. */
  readonly prefix: readonly string[];
  /** All that it sees of the host's files; none: everything. */
  readonly shown: readonly string[];
  readonly main: string;
  /** Remembers the process, so that the next engine can end it. */
  readonly recordFile: string;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Where Node keeps compiled code; null: nowhere. */
  readonly codeCache: string | null;
  /** Where the process is limited; null: it is part of what serves all. */
  readonly group: Pick<BoundedGroup, 'admit'> | null;
  /** What a process that starts now has to know. */
  readonly config: () => ProcessConfig;
  /** Called again whenever the process was replaced. */
  readonly onListening: (ports: Ports) => Promise<void>;
  readonly onReport: (report: PassedReport, answer: (order: object) => void) => void;
}

/** What is not dealt with here. */
type PassedReport = Exclude<EgressReport, { kind: 'listening' | 'failed' | 'done' }>;

/** For what hangs: it takes a quarter of a second, and a hundred times that on a machine that is overloaded. */
const START_DEADLINE_MS = 45_000;
/** A caller of a sandbox waits this long for the first one, or the next. */
const READY_DEADLINE_MS = 15_000;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** A process that lived this long was fine; the next failure starts the delays anew. */
const HEALTHY_AFTER_MS = 30_000;
const MAX_HEAP_MIB = 128;
const ORDER_DEADLINE_MS = 10_000;
const WATCH_TICK_MS = 1000;
/** One that uses the CPU all this time and answers nothing is in a loop. */
const BUSY_TICKS = 30;

/** Keeps one process running: starts it, replaces it with growing delays when it dies or hangs, ends it. */
export class KeptProcess<Order extends object> {
  readonly #options: KeptProcessOptions;
  #child: ChildProcess | null = null;
  #watchdog: Watchdog | null = null;
  #delayMs = FIRST_DELAY_MS;
  #retry: NodeJS.Timeout | null = null;
  #isClosed = false;
  #lastId = 0;
  /** Settled once a process of ours listens: one of an earlier engine knows nothing that came later. */
  readonly #ready = Promise.withResolvers<void>();
  /** Of questions to the process that runs now. */
  readonly #asked = new Map<number, (pins: readonly Pin[]) => void>();

  constructor(options: KeptProcessOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when the process of an earlier engine serves on, which is then replaced by the way, or a new one listens. */
  async takeOver(): Promise<void> {
    const earlier = await findRecordedProcess(this.#options.recordFile);
    if (earlier === null) return await this.#launch();
    await this.#options.onListening({ ipv4: earlier.port, ipv6: earlier.port });
    this.start();
  }

  /** A failed start ends the process, and its `exit` plans the next attempt. */
  start(): void {
    this.#launch().catch((error: unknown) => {
      if (this.#isClosed) return;
      this.#options.logger.warn({ error }, `The ${this.#options.name} process did not start`);
      // One that never was has no exit either.
      if (this.#child?.pid === undefined) this.#startLater();
    });
  }

  /** Rejects when no process of ours has listened yet, and none does soon. */
  async whenReady(): Promise<void> {
    const late = Promise.withResolvers<never>();
    const complaint = `The ${this.#options.name} of this host is being started; try again`;
    const timer = setTimeout(
      () => late.reject(new PlatformError('unavailable', complaint)),
      READY_DEADLINE_MS,
    );
    await Promise.race([this.#ready.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  /** Nothing when the process is away or is late: one that starts learns what holds then. */
  async ask(order: (id: number) => Order): Promise<readonly Pin[]> {
    const late = Promise.withResolvers<readonly Pin[]>();
    const timer = setTimeout(() => late.resolve([]), ORDER_DEADLINE_MS);
    const answered = this.#answered(order);
    return await Promise.race([answered, late.promise]).finally(() => clearTimeout(timer));
  }

  tell(order: Order): void {
    this.#send(order);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#retry !== null) clearTimeout(this.#retry);
    const child = this.#child;
    this.#lose();
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await endRecordedProcess(this.#options.recordFile);
  }

  async #answered(order: (id: number) => object): Promise<readonly Pin[]> {
    if (this.#child?.connected !== true) return [];
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve } = Promise.withResolvers<readonly Pin[]>();
    this.#asked.set(id, resolve);
    this.#send(order(id));
    return await promise.finally(() => this.#asked.delete(id));
  }

  async #launch(): Promise<void> {
    const child = this.#spawn();
    this.#child = child;
    const startedAt = performance.now();
    child.once('exit', (code, signal) => this.#replace(child, performance.now() - startedAt, code ?? signal));
    try {
      const ports = await whenListening(child);
      if (this.#isClosed) return;
      this.#watch(child);
      await this.#options.onListening(ports);
      this.#ready.resolve();
      await endRecordedProcess(this.#options.recordFile);
      await recordProcess(this.#options.recordFile, child.pid, ports.ipv4);
      this.#send({ kind: 'recorded' });
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  #spawn(): ChildProcess {
    const { hostProgram, prefix, shown, main, logger, codeCache, config, name } = this.#options;
    const node = [process.execPath, `--max-old-space-size=${MAX_HEAP_MIB}`, main];
    // SAFETY: no shell; the arguments are ours. Of root's powers the child keeps what it needs to read its own program and to become
    // another user, and nothing it starts could gain any back (host/src/confine/seclude.h).
    const secluded = [hostProgram, '--seclude', String(shown.length), ...shown];
    const [program = '', ...words] = [...prefix, ...secluded, ...node];
    const child = spawn(program, words, {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Addresses are numbers that JSON does not have.
      serialization: 'advanced',
      // A signal to the engine's terminal is not meant for it.
      detached: true,
      cwd: '/',
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        ...(codeCache === null ? {} : { NODE_COMPILE_CACHE: codeCache }),
      },
    });
    child.on('error', (error) => logger.warn({ error }, `The ${name} process cannot be started`));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      logger.warn({ output: text.slice(0, 2000) }, `The ${name} process complained`);
    });
    child.on('message', (report: EgressReport) => this.#hear(child, report));
    this.#limit(child);
    child.send(config(), () => undefined);
    return child;
  }

  /** Before it has read a byte of a sandbox. */
  #limit({ pid }: ChildProcess): void {
    const { group, name, logger } = this.#options;
    if (group === null || pid === undefined) return;
    try {
      group.admit(pid);
    } catch (error) {
      logger.warn({ error }, `The ${name} process runs without limits of its own; see svc doctor`);
    }
  }

  /** One that hangs is of no more use than one that has died. */
  #watch(child: ChildProcess): void {
    const { name, logger } = this.#options;
    const watched = {
      ask: () => this.#answered((id) => ({ kind: 'ping', id })),
      look: () => (child.pid === undefined ? undefined : readProcessState(child.pid)),
      onFrozen: (reason: string) => {
        logger.warn({ pid: child.pid, reason }, `The ${name} process hangs; it is replaced`);
        child.kill('SIGKILL');
      },
    };
    this.#watchdog = new Watchdog(watched, WATCH_TICK_MS, BUSY_TICKS);
  }

  #hear(child: ChildProcess, report: EgressReport): void {
    const { logger, onReport, name } = this.#options;
    if (report.kind === 'listening') return;
    if (report.kind === 'failed') logger.warn({ reason: report.reason }, `The ${name} process failed`);
    else if (report.kind === 'done') this.#asked.get(report.id)?.(report.pins);
    else this.#pass(child, report, onReport);
  }

  /** SAFETY: it reads hostile bytes; should it be taken over, no report of it may end the engine. */
  #pass(child: ChildProcess, report: PassedReport, onReport: KeptProcessOptions['onReport']): void {
    try {
      onReport(report, (order) => {
        if (child.connected) child.send(order, () => undefined);
      });
    } catch (error) {
      const { name, logger } = this.#options;
      logger.warn({ error }, `The ${name} process reports nonsense; it is replaced`);
      child.kill('SIGKILL');
    }
  }

  #send(order: object): void {
    const child = this.#child;
    if (child?.connected === true) child.send(order, () => undefined);
  }

  #lose(): void {
    this.#watchdog?.close();
    this.#watchdog = null;
    this.#child = null;
    for (const resolve of this.#asked.values()) resolve([]);
  }

  #replace(child: ChildProcess, livedMs: number, cause: number | string | null): void {
    if (this.#isClosed || this.#child !== child) return;
    this.#lose();
    if (livedMs > HEALTHY_AFTER_MS) this.#delayMs = FIRST_DELAY_MS;
    this.#options.logger.warn(
      { cause, delayMs: this.#delayMs },
      `The ${this.#options.name} process ended; another is started`,
    );
    this.#startLater();
  }

  #startLater(): void {
    if (this.#retry !== null) return;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.start();
    }, this.#delayMs);
    this.#delayMs = Math.min(LONGEST_DELAY_MS, this.#delayMs * 2);
  }
}

export async function whenListening(child: ChildProcess, deadlineMs = START_DEADLINE_MS): Promise<Ports> {
  const signal = AbortSignal.timeout(deadlineMs);
  const exited = once(child, 'exit', { signal }).then(() => {
    throw new Error('The process ended before it listened; see the log');
  });
  try {
    for (;;) {
      const [report] = (await Promise.race([once(child, 'message', { signal }), exited])) as [EgressReport];
      if (report.kind === 'listening') return report.ports;
      if (report.kind === 'failed') throw new Error(`The process failed: ${report.reason}`);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`The process does not listen after ${deadlineMs} ms`, { cause: error });
  }
}
