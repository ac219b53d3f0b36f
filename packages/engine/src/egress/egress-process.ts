import type { ChildProcess } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { PlatformError } from '@svc/contract/errors';
import { programFile } from '@svc/contract/node-program';
import type { Logger } from 'pino';
import type { Surroundings } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import {
  LISTENER_DESCRIPTORS,
  type EgressConfig,
  type EgressOrder,
  type EgressReport,
  type Pin,
  type ProxyPorts,
} from './egress-messages.ts';
import type { ProxySettings } from './proxied-sandboxes.ts';
import { endRecordedProcess, findRecordedProcess, recordProcess } from './recorded-process.ts';

export interface EgressOptions extends Omit<EgressConfig, 'surroundings' | 'policies' | 'proxied' | 'pins'> {
  /** svc-host, which opens the proxy's socket. */
  readonly hostProgram: string;
  /** Remembers the process, so that the next engine can end it. */
  readonly recordFile: string;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Where Node keeps compiled code; null: nowhere. */
  readonly codeCache: string | null;
  /** Queries are to be sent to this port from now on, connections to the other if there is one. Called again whenever the process was replaced. */
  readonly onListening: (port: number, proxyPorts: ProxyPorts | null) => Promise<void>;
  /** What a process that starts now has to know. */
  readonly surroundings: () => Surroundings;
  readonly sandboxes: () => Pick<EgressConfig, 'policies' | 'proxied' | 'pins'>;
  /** What was decided about what sandboxes do. */
  readonly onReport: (client: string, report: NetworkReport) => void;
  /** Returns when the packet filter knows them. */
  readonly onPin: (client: string, pins: readonly Pin[]) => Promise<void>;
}

const MAIN = programFile(import.meta.url, { built: '../../build/egress/main.js', source: 'egress-main.ts' });
/** For what hangs: it takes a quarter of a second, and a hundred times that on a machine that is overloaded. */
const START_DEADLINE_MS = 45_000;
/** Who makes a sandbox waits this long for the next one. */
const REPLACED_DEADLINE_MS = 15_000;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** A process that lived this long was fine; the next failure starts the delays anew. */
const HEALTHY_AFTER_MS = 30_000;
const MAX_HEAP_MIB = 128;
const ORDER_DEADLINE_MS = 10_000;

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
  #lastId = 0;
  /** Settled once questions go to a process of ours: that of an earlier engine knows no policy that came later. */
  readonly #ours = Promise.withResolvers<void>();
  /** Of questions to the process that runs now. */
  readonly #asked = new Map<number, (pins: readonly Pin[]) => void>();

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
    // Nobody knows what that one was told, so connections wait for the next.
    await this.#options.onListening(earlier.port, null);
    this.#launchInBackground();
  }

  /**
   * Tells what a sandbox may do; null: it is gone, or has the default. Returns what the sandbox knows of names. A process that is away
   * knows nothing, and learns the policy when it starts. Rejects when questions still go to the process of an earlier engine.
   */
  async setPolicy(
    client: string,
    policy: ResolvedPolicy | null,
    settings: ProxySettings | null = null,
  ): Promise<readonly Pin[]> {
    if (policy !== null) await this.#whenOurs();
    return await this.#ask((id) => ({ kind: 'setPolicy', id, client, policy, settings }));
  }

  /** What a sandbox has resolved; nothing when the process is away. */
  async known(client: string): Promise<readonly Pin[]> {
    return await this.#ask((id) => ({ kind: 'tellKnown', id, client }));
  }

  async #ask(order: (id: number) => EgressOrder): Promise<readonly Pin[]> {
    const child = this.#child;
    if (child === null || !child.connected) return [];
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve } = Promise.withResolvers<readonly Pin[]>();
    this.#asked.set(id, resolve);
    const timer = setTimeout(() => resolve([]), ORDER_DEADLINE_MS);
    this.#tell(order(id));
    return await promise.finally(() => {
      clearTimeout(timer);
      this.#asked.delete(id);
    });
  }

  async #whenOurs(): Promise<void> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () =>
        late.reject(
          new PlatformError('unavailable', 'The resolver of this host is being replaced; try again'),
        ),
      REPLACED_DEADLINE_MS,
    );
    await Promise.race([this.#ours.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  setSurroundings(surroundings: Surroundings): void {
    this.#tell({ kind: 'setSurroundings', surroundings });
  }

  /** The sandbox with that address is gone; the next to have it is another. */
  forget(client: string): void {
    this.#tell({ kind: 'forget', client });
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
      const { port, proxyPorts } = await whenListening(child);
      if (this.#isClosed) return;
      await this.#options.onListening(port, proxyPorts);
      this.#ours.resolve();
      await endRecordedProcess(this.#options.recordFile);
      await recordProcess(this.#options.recordFile, child.pid, port);
      this.#tell({ kind: 'recorded' });
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
    const { listenAddress, ipv6ListenAddress, hostId, resolvers, hostProgram, logger, codeCache } =
      this.#options;
    const { surroundings, sandboxes } = this.#options;
    const listen = (address: string, descriptor: number) => ['--listen', address, String(descriptor)];
    const child = spawn(
      hostProgram,
      [
        ...listen(listenAddress, LISTENER_DESCRIPTORS.ipv4),
        ...(ipv6ListenAddress === null
          ? []
          : [hostProgram, ...listen(ipv6ListenAddress, LISTENER_DESCRIPTORS.ipv6)]),
        'setpriv',
        ...CONFINE,
        process.execPath,
        `--max-old-space-size=${MAX_HEAP_MIB}`,
        MAIN,
      ],
      {
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
      },
    );
    child.on('error', (error) => logger.warn({ error }, 'The egress process cannot be started'));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      logger.warn({ output: text.slice(0, 2000) }, 'The egress process complained');
    });
    child.on('message', (report: EgressReport) => this.#hear(child, report));
    const config: EgressConfig = {
      listenAddress,
      ipv6ListenAddress,
      hostId,
      resolvers,
      surroundings: surroundings(),
      ...sandboxes(),
    };
    child.send(config, () => undefined);
    return child;
  }

  #hear(child: ChildProcess, report: EgressReport): void {
    const { logger, onPin } = this.#options;
    if (report.kind === 'listening') return;
    if (report.kind === 'failed') logger.warn({ reason: report.reason }, 'The egress process failed');
    else if (report.kind === 'known') this.#asked.get(report.id)?.(report.pins);
    else if (report.kind === 'decided') this.#options.onReport(report.client, report.report);
    else {
      const { id, client, pins } = report;
      const answer = (done: boolean) => {
        if (child.connected) child.send({ kind: 'pinned', id, done } satisfies EgressOrder, () => undefined);
      };
      onPin(client, pins).then(
        () => answer(true),
        (error: unknown) => {
          logger.warn({ error, client }, 'A sandbox cannot be led to the addresses of a name');
          answer(false);
        },
      );
    }
  }

  #tell(order: EgressOrder): void {
    const child = this.#child;
    if (child?.connected === true) child.send(order, () => undefined);
  }

  #replace(child: ChildProcess, livedMs: number, cause: number | string | null): void {
    if (this.#isClosed || this.#child !== child) return;
    this.#child = null;
    for (const resolve of this.#asked.values()) resolve([]);
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

export async function whenListening(
  child: ChildProcess,
  deadlineMs = START_DEADLINE_MS,
): Promise<{ readonly port: number; readonly proxyPorts: ProxyPorts }> {
  const signal = AbortSignal.timeout(deadlineMs);
  const exited = once(child, 'exit', { signal }).then(() => {
    throw new Error('The egress process ended before it listened; see the log');
  });
  try {
    for (;;) {
      const [report] = (await Promise.race([once(child, 'message', { signal }), exited])) as [EgressReport];
      if (report.kind === 'listening') return report;
      if (report.kind === 'failed') throw new Error(`The egress process failed: ${report.reason}`);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`The egress process does not listen after ${deadlineMs} ms`, { cause: error });
  }
}
