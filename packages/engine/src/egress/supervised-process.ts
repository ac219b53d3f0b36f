import type { ChildProcess } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import type { BoundedGroup } from '../cgroup/bounded-group.ts';
import { linkWords, type Link } from '../host/link-words.ts';
import { readProcessState } from '../host/process-state.ts';
import { Watchdog } from '../host/watchdog.ts';
import {
  LINK_DESCRIPTOR,
  type EgressReport,
  type Pin,
  type Ports,
  type ProcessConfig,
} from './egress-messages.ts';
import { ProcessLink } from './process-link.ts';
import { endRecordedProcess, findRecordedProcess, recordProcess } from './recorded-process.ts';

export interface SupervisedProcessOptions {
  /** Name in log messages. */
  readonly name: string;
  /** Further log fields. */
  readonly about: Readonly<Record<string, string>>;
  /** Path of svc-host, which executes the program. */
  readonly hostProgram: string;
  /** What svc-host does first, one argument per word: opening sockets for instance. */
  readonly prefix: readonly string[];
  /** Whether the process may open sockets itself, or only accepts connections on those that `prefix` opened. */
  readonly choosesAddress: boolean;
  /** Joins its own network namespace to that of the host; null: it has the network of the host. */
  readonly link: Link | null;
  /** Folders of the host that it can see; none: all of them. */
  readonly shown: readonly string[];
  readonly main: string;
  /** File that records the process, so that the next engine can end it. */
  readonly recordFile: string;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Node's compile cache; null: none. */
  readonly codeCache: string | null;
  /** Cgroup that limits the process; null: none, because it serves all sandboxes. */
  readonly group: Pick<BoundedGroup, 'admit'> | null;
  /** Rate limit for its reports; null: none. */
  readonly maxReportsPerSecond: number | null;
  /** Interval of the health check; default one second. */
  readonly watchTickMs?: number;
  /** Configuration for a process that starts now. */
  readonly config: () => ProcessConfig;
  /** Called at the start and after each replacement. */
  readonly onListening: (ports: Ports) => Promise<void>;
  readonly onReport: (report: PassedReport, answer: (order: object) => void) => void;
}

/** Reports that are not handled here. */
type PassedReport = Exclude<EgressReport, { kind: 'listening' | 'failed' | 'done' }>;

/** Health check timeout: answers take a quarter of a second, and a hundred times that on an overloaded machine. */
const START_DEADLINE_MS = 45_000;
/** How long a caller waits for the first process, or its replacement. */
const READY_DEADLINE_MS = 15_000;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** A process that lived this long counts as healthy; the next failure starts the back-off anew. */
const HEALTHY_AFTER_MS = 30_000;
const MAX_HEAP_MIB = 128;
const ORDER_DEADLINE_MS = 10_000;
const WATCH_TICK_MS = 1000;
/** A process that uses the CPU for this long without an answer is in an endless loop. */
const BUSY_TICKS = 30;
/** How much of one process's stderr is written to the log. */
const MAX_COMPLAINTS = 16;
const MAX_COMPLAINT_CHARACTERS = 2000;

/** A process that this engine started, and the link to it. */
interface Kept {
  readonly child: ChildProcess;
  readonly link: ProcessLink;
  readonly listening: PromiseWithResolvers<Ports>;
}

/** Supervises one process: starts it, replaces it with back-off when it dies or hangs, ends it. */
export class SupervisedProcess<Order extends object> {
  readonly #options: SupervisedProcessOptions;
  #kept: Kept | null = null;
  #watchdog: Watchdog | null = null;
  #delayMs = FIRST_DELAY_MS;
  #retry: NodeJS.Timeout | null = null;
  #isClosed = false;
  #lastId = 0;
  /** Settled once a process of this engine listens: one of an earlier engine has no newer state. */
  readonly #ready = Promise.withResolvers<void>();
  /** Pending requests to the current process. */
  readonly #asked = new Map<number, (pins: readonly Pin[]) => void>();

  constructor(options: SupervisedProcessOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#kept?.child.pid;
  }

  /** Resolves when the process of an earlier engine is serving, which is replaced in the background, or a new one listens. */
  async takeOver(): Promise<void> {
    const earlier = await findRecordedProcess(this.#options.recordFile);
    if (earlier === null) return await this.#launch();
    await this.#options.onListening({ ipv4: earlier.port, ipv6: earlier.port });
    this.start();
  }

  /** A failed start ends the process, and its `exit` schedules the next attempt. */
  start(): void {
    this.#launch().catch((error: unknown) => {
      if (this.#isClosed) return;
      this.#warn({ error }, `The ${this.#options.name} process did not start`);
      // A process that was never created emits no exit.
      if (this.pid === undefined) this.#startLater();
    });
  }

  /** Rejects when no process of this engine listens within the deadline. */
  async whenReady(): Promise<void> {
    const late = Promise.withResolvers<never>();
    const complaint = `The ${this.#options.name} of this host is being started; try again`;
    const timer = setTimeout(
      () => late.reject(new PlatformError('unavailable', complaint)),
      READY_DEADLINE_MS,
    );
    await Promise.race([this.#ready.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  /** Undefined when the process is away or late: a new one starts with the current state. */
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
    const child = this.#kept?.child;
    this.#lose();
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await endRecordedProcess(this.#options.recordFile);
  }

  async #answered(order: (id: number) => object): Promise<readonly Pin[]> {
    if (this.#kept?.link.isOpen !== true) return [];
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve } = Promise.withResolvers<readonly Pin[]>();
    this.#asked.set(id, resolve);
    this.#send(order(id));
    return await promise.finally(() => this.#asked.delete(id));
  }

  async #launch(): Promise<void> {
    const kept = this.#spawn();
    const { child, listening } = kept;
    this.#kept = kept;
    const startedAt = performance.now();
    child.once('exit', (code, signal) => this.#replace(child, performance.now() - startedAt, code ?? signal));
    try {
      const ports = await whenListening(child, listening.promise);
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

  #spawn(): Kept {
    const { prefix, main, codeCache, config, name } = this.#options;
    const node = [process.execPath, `--max-old-space-size=${MAX_HEAP_MIB}`, main];
    // SAFETY: no shell; the arguments are ours. Of root's capabilities the child keeps those that it needs to read its own program and to
    // change its user; nothing that it starts can regain any (host/src/confine/seclude.h).
    const [program = '', ...words] = [...prefix, ...secludedBy(this.#options), ...node];
    const child = spawn(program, words, {
      // The last is LINK_DESCRIPTOR.
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      // Not killed by a signal to the engine's terminal.
      detached: true,
      cwd: '/',
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        ...(codeCache === null ? {} : { NODE_COMPILE_CACHE: codeCache }),
      },
    });
    child.on('error', (error) => this.#warn({ error }, `The ${name} process cannot be started`));
    this.#hearComplaints(child);
    this.#limit(child);
    const kept = this.#link(child);
    kept.link.send(config());
    return kept;
  }

  #link(child: ChildProcess): Kept {
    const { maxReportsPerSecond, name } = this.#options;
    const listening = Promise.withResolvers<Ports>();
    // A process that never listens has its own deadline.
    listening.promise.catch(() => undefined);
    const link = new ProcessLink(child.stdio[LINK_DESCRIPTOR] as Duplex, {
      maxReportsPerSecond,
      onReport: (report) => this.#hear({ child, link, listening }, report),
      onNonsense: (error) => {
        this.#warn({ error, pid: child.pid }, `The ${name} process reports nonsense; it is replaced`);
        child.kill('SIGKILL');
      },
    });
    return { child, link, listening };
  }

  /** SAFETY: bounded, because a compromised process could fill the log of the engine. */
  #hearComplaints({ stderr }: ChildProcess): void {
    const { name } = this.#options;
    let left = MAX_COMPLAINTS;
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      const output = text.slice(0, MAX_COMPLAINT_CHARACTERS);
      this.#warn({ output }, `The ${name} process complained`);
      left -= 1;
      if (left === 0) stderr.destroy();
    });
  }

  /** Applies the limits before the process has read any input of a sandbox. */
  #limit({ pid }: ChildProcess): void {
    const { group, name } = this.#options;
    if (group === null || pid === undefined) return;
    try {
      group.admit(pid);
    } catch (error) {
      this.#warn({ error }, `The ${name} process runs without limits of its own; see svc doctor`);
    }
  }

  /** A process that hangs is replaced like one that has died. */
  #watch(child: ChildProcess): void {
    const { name, watchTickMs = WATCH_TICK_MS } = this.#options;
    const watched = {
      ask: () => this.#answered((id) => ({ kind: 'ping', id })),
      look: () => (child.pid === undefined ? undefined : readProcessState(child.pid)),
      onFrozen: (reason: string) => {
        this.#warn({ pid: child.pid, reason }, `The ${name} process hangs; it is replaced`);
        child.kill('SIGKILL');
      },
    };
    this.#watchdog = new Watchdog(watched, watchTickMs, BUSY_TICKS);
  }

  /** SAFETY: an error here ends the process, and not the engine. */
  #hear({ link, listening }: Kept, report: EgressReport): void {
    const { onReport, name } = this.#options;
    if (report.kind === 'listening') listening.resolve(report.ports);
    else if (report.kind === 'done') this.#asked.get(report.id)?.(report.pins);
    else if (report.kind === 'failed') {
      this.#warn({ reason: report.reason }, `The ${name} process failed`);
      listening.reject(new Error(`The process failed: ${report.reason}`));
    } else onReport(report, (order) => link.send(order));
  }

  #send(order: object): void {
    this.#kept?.link.send(order);
  }

  #lose(): void {
    this.#watchdog?.close();
    this.#watchdog = null;
    this.#kept?.link.close();
    this.#kept = null;
    for (const resolve of this.#asked.values()) resolve([]);
  }

  #replace(child: ChildProcess, livedMs: number, cause: number | string | null): void {
    if (this.#isClosed || this.#kept?.child !== child) return;
    this.#lose();
    if (livedMs > HEALTHY_AFTER_MS) this.#delayMs = FIRST_DELAY_MS;
    this.#warn(
      { cause, delayMs: this.#delayMs },
      `The ${this.#options.name} process ended; another is started`,
    );
    this.#startLater();
  }

  #warn(fields: object, text: string): void {
    const { logger, about } = this.#options;
    logger.warn({ ...about, ...fields }, text);
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

function secludedBy({
  hostProgram,
  choosesAddress,
  link,
  shown,
}: SupervisedProcessOptions): readonly string[] {
  const counted = (words: readonly string[]) => [String(words.length), ...words];
  return [
    hostProgram,
    '--seclude',
    choosesAddress ? '1' : '0',
    ...counted(linkWords(link)),
    ...counted(shown),
  ];
}

/** `listening`: settled by the process's report. */
export async function whenListening(
  child: ChildProcess,
  listening: Promise<Ports>,
  deadlineMs = START_DEADLINE_MS,
): Promise<Ports> {
  const signal = AbortSignal.timeout(deadlineMs);
  const exited = once(child, 'exit', { signal }).then(() => {
    throw new Error('The process ended before it listened; see the log');
  });
  try {
    return await Promise.race([listening, exited]);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`The process does not listen after ${deadlineMs} ms`, { cause: error });
  }
}
