import { setTimeout as delay } from 'node:timers/promises';
import { abortable } from '@svc/contract/async';
import { GuestLink, type GuestListener } from '../guest/guest-link.ts';
import type { GuestStatus, Hello, ProcessOutput, ProcessState } from '../guest/guest-messages.ts';
import type { SandboxLog } from '../logs/sandbox-log.ts';
import type { Slot } from '../network/network.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Kit } from './kit.ts';
import { MainProcess } from './main-process.ts';
import { Rest } from '../tuning/rest.ts';

/** How a run ended without a request. */
export type RunEnd =
  | { readonly by: 'death'; readonly outOfMemory: boolean }
  | { readonly by: 'main'; readonly state: ProcessState };

interface RunParts {
  readonly kit: Kit;
  readonly handle: string;
  readonly token: string;
  readonly slot: Slot;
  readonly runtime: Runtime;
  /** True for a run that an earlier engine started. */
  readonly isFound?: boolean;
  readonly log: SandboxLog;
  readonly onOutOfMemory: () => void;
}

const DEATH_CHECK_MS = 20;

/** The runtime state of a run: the connection to svc-init, the events it reports, and whether it is still alive. */
export class Run implements GuestListener {
  readonly slot: Slot;
  readonly main: MainProcess;
  readonly #rest: Rest | undefined;
  readonly ended = Promise.withResolvers<RunEnd>();
  readonly #parts: RunParts;
  readonly #hello = Promise.withResolvers<Hello>();
  #link: GuestLink | undefined;
  #lastActivityMs = performance.now();
  #lastSaidMs = performance.now();
  #activeProcesses = 0;
  #oomKills = 0;
  #forkRefusals: number;
  #closed = false;

  private constructor(parts: RunParts) {
    this.#parts = parts;
    this.slot = parts.slot;
    const { runtime, handle, isFound = false } = parts;
    const { logger, tuning } = parts.kit;
    if (tuning !== null && runtime.isolation === 'gvisor')
      this.#rest = new Rest({ runtime, handle, isFound, logger });
    this.#forkRefusals = parts.kit.cgroups.forkRefusals(parts.handle);
    this.main = new MainProcess(`main-${parts.token.slice(0, 8)}`, parts.log, {
      notify: (type, payload) => this.#link?.notify(type, payload),
      request: (type, payload, signal) => this.link.request(type, payload, signal),
    });
    // An abandoned start leaves no listener for this rejection.
    this.#hello.promise.catch(() => {});
  }

  /** Listens for svc-init, which may be running already (after a restart of the engine) or start soon. */
  static async listen(parts: RunParts): Promise<Run> {
    const run = new Run(parts);
    const { guestFolders, tokenBuckets } = parts.kit;
    run.#link = await GuestLink.listen(guestFolders.of(parts.handle).path, parts.token, run, tokenBuckets);
    return run;
  }

  get link(): GuestLink {
    if (this.#link === undefined) throw new Error('the run is not listening');
    return this.#link;
  }

  /** Resolves when svc-init has connected; rejects when it never will. */
  async firstHello(signal: AbortSignal): Promise<Hello> {
    return await abortable(this.#hello.promise, signal);
  }

  /** Milliseconds without activity; 0 while a process runs for a client. */
  idleMs(): number {
    return this.#activeProcesses > 0 || this.main.isRunning ? 0 : performance.now() - this.#lastActivityMs;
  }

  /** Milliseconds since the last message in either direction. */
  quietMs(): number {
    return Math.min(this.idleMs(), performance.now() - this.#lastSaidMs);
  }

  touch(): void {
    this.#lastActivityMs = performance.now();
  }

  /** The sandbox is idle and no caller waits: gVisor's kernel need not poll every millisecond. */
  rest(): void {
    this.#rest?.rest();
  }

  /** As `rest`, after a delay: processes started ahead wait for a caller who may come at any time. */
  restLater(): void {
    this.#rest?.restLater();
  }

  /** Rests soon, unless a message is sent to it: it runs no process of its caller. */
  restSoon(): void {
    if (this.#activeProcesses === 0 && !this.main.isRunning) this.#rest?.restSoon();
  }

  /** Wakes it for callers that reach it by other ways than a request or a new session. */
  wake(): void {
    this.#lastSaidMs = performance.now();
    this.#rest?.wake();
  }

  asked(): void {
    this.wake();
  }

  connected(hello: Hello): void {
    this.touch();
    this.#hello.resolve(hello);
    const main = hello.processes.find((process) => process.key === this.main.key);
    if (main !== undefined) this.main.resume(main, (state) => this.exited(state));
  }

  disconnected(): void {
    this.#activeProcesses = 0;
    if (!this.#closed)
      this.#watchDeath().catch((error: unknown) => this.#parts.kit.logger.error({ error }, 'watch'));
  }

  status(status: GuestStatus): void {
    this.#activeProcesses = status.activeProcesses;
    if (status.activeProcesses > 0) this.wake();
    else if (status.isAlone) this.restSoon();
    // An earlier reading may be slightly old.
    else this.#rest?.stay();
    this.touch();
  }

  output(output: ProcessOutput): void {
    if (output.key === this.main.key) this.main.receive(output);
  }

  exited(state: ProcessState): void {
    if (state.key === this.main.key) this.ended.resolve({ by: 'main', state });
  }

  /** True when the kernel has killed a process for memory since the last call. */
  async wasOutOfMemory(): Promise<boolean> {
    const kills = this.#parts.kit.cgroups.oomKills(this.#parts.handle);
    const isNew = kills > this.#oomKills;
    this.#oomKills = Math.max(kills, this.#oomKills);
    if (isNew) this.#parts.onOutOfMemory();
    return await Promise.resolve(isNew);
  }

  /** True when a process could not be started because of the process limit since the last call. */
  wereForksRefused(): boolean {
    const refusals = this.#parts.kit.cgroups.forkRefusals(this.#parts.handle);
    const isNew = refusals > this.#forkRefusals;
    this.#forkRefusals = Math.max(refusals, this.#forkRefusals);
    return isNew;
  }

  /** Afterwards no event of the sandbox is reported. Can be repeated. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#rest?.close();
    await this.#link?.close();
  }

  /** svc-init reconnects while it lives: a connection that stays closed means that it is dead or hangs. */
  async #watchDeath(): Promise<void> {
    const { kit, handle, runtime } = this.#parts;
    const deadline = performance.now() + kit.limits.reconnectMs;
    while (!this.#closed && this.#link?.isConnected === false) {
      if (!(await runtime.isAlive(handle)) || performance.now() > deadline) {
        const outOfMemory = await this.wasOutOfMemory();
        this.ended.resolve({ by: 'death', outOfMemory: outOfMemory || this.#oomKills > 0 });
        return;
      }
      await delay(DEATH_CHECK_MS);
    }
  }
}
