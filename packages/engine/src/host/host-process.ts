import { spawn } from '@svc/contract/node-spawn';
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { readProcessState } from './process-state.ts';
import { HostCallError } from './host-calls.ts';

type Child = ChildProcessByStdio<Writable, Readable, null>;

interface PendingCall {
  readonly call: string;
  readonly resolve: (answer: string) => void;
  readonly reject: (error: HostCallError) => void;
  readonly deadline: NodeJS.Timeout;
  readonly isSlow: boolean;
}

/** A helper that sleeps for this many looks while a call waits is hanging. A helper in disk I/O does not sleep. */
const QUIET_LOOKS = 10;
/** Additional time for slow calls. */
const SLOW_FACTOR = 10;

/**
 * One svc-host process, started at the first call and again after it died. It runs calls in sequence, and slow ones concurrently.
 * A call that was in progress when the process died fails with `ECHILD`, one that timed out with `ETIMEDOUT`:
 * in both cases it may or may not have been carried out.
 */
export class HostProcess {
  readonly #binary: string;
  readonly #timeoutMs: number;
  readonly #lookMs: number;
  readonly #pending = new Map<number, PendingCall>();
  #child: Child | undefined;
  #lastId = 0;
  #looking: NodeJS.Timeout | undefined;
  #isStopped = false;
  #quietLooks = 0;
  #cpuTicks = 0;
  #isClosed = false;

  /** `lookMs`: how often a helper with an open call is checked. */
  constructor(binary: string, timeoutMs: number, lookMs: number) {
    this.#binary = binary;
    this.#timeoutMs = timeoutMs;
    this.#lookMs = lookMs;
  }

  /** Number of calls in front of a new one. */
  get queueLength(): number {
    return this.#pending.values().reduce((sum, { isSlow }) => sum + (isSlow ? 0 : 1), 0);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async call(call: string, fields: readonly string[], isSlow: boolean): Promise<string> {
    if (this.#isClosed) throw new HostCallError(call, 'ESHUTDOWN', 'the host calls are closed');
    const child = (this.#child ??= this.#start());
    const id = ++this.#lastId;
    const line = [String(id), call, ...fields.map(encodeURIComponent)].join('\t');
    return new Promise((resolve, reject) => {
      // The helper is stuck in the kernel or broken: kill it, and the next call starts a new one.
      const timeoutMs = isSlow ? this.#timeoutMs * SLOW_FACTOR : this.#timeoutMs;
      const deadline = setTimeout(() => this.#end(child, 'ETIMEDOUT', 'no answer in time'), timeoutMs);
      this.#pending.set(id, { call, resolve, reject, deadline, isSlow });
      this.#looking ??= setInterval(() => this.#look(), this.#lookMs);
      child.stdin.write(`${line}\n`);
    });
  }

  /** Calls in progress are finished. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const child = this.#child;
    if (child === undefined) return;
    const closed = once(child, 'close');
    child.stdin.end();
    const deadline = setTimeout(() => child.kill('SIGKILL'), this.#timeoutMs * SLOW_FACTOR);
    await closed;
    clearTimeout(deadline);
  }

  #start(): Child {
    // SAFETY: the path comes from our own configuration; an empty environment and its own process group keep the helper
    // independent of the environment and the terminal of the engine.
    const child = spawn(this.#binary, [], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {},
      cwd: '/',
      detached: true,
    });
    child.once('error', () => this.#end(child, 'ENOENT', 'svc-host cannot be started; run `npm run build`'));
    // Not `exit`: answers may still be in the pipe then.
    child.once('close', () => this.#end(child, 'ECHILD', 'svc-host ended during the call'));
    // A write to a helper that just died fails here; its `close` rejects the call.
    child.stdin.on('error', () => undefined);
    createInterface({ input: child.stdout }).on('line', (line) => this.#receive(line));
    return child;
  }

  /** A helper that is stopped by a signal at two looks in a row counts as dead; so does one that keeps sleeping. */
  #look(): void {
    const child = this.#child;
    if (child?.pid === undefined || this.#pending.size === 0) {
      clearInterval(this.#looking);
      this.#looking = undefined;
      return;
    }
    const wasStopped = this.#isStopped;
    const { state, cpuTicks = 0 } = readProcessState(child.pid) ?? {};
    this.#isStopped = state === 'T';
    const isQuiet = state === 'S' && cpuTicks === this.#cpuTicks && this.queueLength > 0;
    this.#quietLooks = isQuiet ? this.#quietLooks + 1 : 0;
    this.#cpuTicks = cpuTicks;
    if (wasStopped && this.#isStopped) this.#end(child, 'ECHILD', 'svc-host was stopped during the call');
    if (this.#quietLooks >= QUIET_LOOKS) this.#end(child, 'ECHILD', 'svc-host hung during the call');
  }

  #receive(line: string): void {
    const [id, outcome, first = '', ...rest] = line.split('\t');
    const pending = this.#pending.get(Number(id));
    if (pending === undefined) return;
    this.#pending.delete(Number(id));
    this.#quietLooks = 0;
    clearTimeout(pending.deadline);
    if (outcome === 'ok') pending.resolve(first);
    else pending.reject(new HostCallError(pending.call, first, rest.join(' ')));
  }

  #end(child: Child, errno: string, message: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#isStopped = false;
    this.#quietLooks = 0;
    child.kill('SIGKILL');
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of lost) {
      clearTimeout(pending.deadline);
      pending.reject(new HostCallError(pending.call, errno, message));
    }
  }
}
