import { writeFileSync } from 'node:fs';
import { DEFAULT_METRICS_INTERVAL_MS } from '@svc/contract/spec';
import type { SandboxMetrics } from '../client/engine-api.ts';
import { readProcessCount, type ProcessCount } from '../guest/guest-messages.ts';
import { renderMeminfo } from '../runtime/proc-files.ts';
import type { Kit } from '../sandboxes/kit.ts';
import type { EngineRecord } from '../sandboxes/record.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import { limitsOf } from '../sandboxes/limits-of.ts';

const MIB = 1024 * 1024;
/** Counting processes inside of gVisor takes some 4 ms of CPU; this interval keeps hundreds of idle sandboxes cheap. */
const COUNT_MS = 2000;
/** Interval for full samples of an idle sandbox: the kernel may have reclaimed memory, or packets may have arrived. */
const WHOLE_MS = 10_000;
/** A wake-up takes half a millisecond, and a sandbox that was unused for this long may stay unused. */
const REST_AFTER_MS = 1000;

const NEVER = Number.NEGATIVE_INFINITY;

/** svc-init, at least. */
const NOT_COUNTED = { countedAt: NEVER, processes: 1, spares: 0 };

type SampledKit = Pick<Kit, 'cgroups' | 'rootfs' | 'network' | 'guestFolders' | 'logger'>;

interface Sample {
  readonly at: number;
  /** Time of the reading. */
  readonly wholeAt: number;
  readonly metrics: SandboxMetrics;
}

interface Count extends ProcessCount {
  readonly askedAt: number;
  /** Send time of the last answered request. */
  readonly countedAt: number;
}

/**
 * The resource use of each running sandbox, sampled once a second or at the longer interval of its spec. Reads few small kernel files per
 * sandbox, a single one when it is idle, and starts no process, so that it stays cheap with hundreds of sandboxes.
 */
export class Sampler {
  readonly #kit: SampledKit;
  readonly #latest = new Map<string, Sample>();
  /** Process counts from inside, by handle, for sandboxes whose processes the host cannot count. */
  readonly #counts = new Map<string, Count>();
  /** Used memory as shown inside, by handle. */
  readonly #shownBytes = new Map<string, number>();
  /** Handles whose last sample failed. */
  readonly #failing = new Set<string>();
  #round: readonly Sandbox[] = [];
  /** How many sandboxes of the round were sampled, and how much of it should have been by now. */
  #looked = 0;
  #due = 1;
  /** CPU time of all sandboxes at the beginning of this round and of the one before. */
  #used = { now: Number.NaN, before: Number.NaN };

  constructor(kit: SampledKit) {
    this.#kit = kit;
  }

  /**
   * Samples a share of the sandboxes, the next share at the next call: frequent calls with little work never delay other work for long. `list`
   * is called when a round is complete.
   */
  sampleShare(list: () => readonly Sandbox[], share: number): void {
    const used = this.#kit.cgroups.cpuMicroseconds('.');
    if (this.#due >= 1) this.#beginRound(list().filter(isRunning), used);
    this.#due += share;
    const until = Math.min(this.#round.length, Math.ceil(this.#round.length * this.#due));
    if (this.#looked === until) return;
    const isCalm = used === this.#used.before && !this.#kit.cgroups.hasOtherParents();
    for (const sandbox of this.#round.slice(this.#looked, until))
      if (isRunning(sandbox)) this.#trySample(sandbox, isCalm);
    this.#looked = until;
  }

  #beginRound(running: readonly Sandbox[], used: number): void {
    this.#round = running;
    this.#looked = 0;
    this.#due = 0;
    this.#used = { now: used, before: this.#used.now };
    if (Math.max(this.#latest.size, this.#shownBytes.size) > running.length) this.#forgetEnded(running);
  }

  /** Samples of the running sandboxes with metrics; a sandbox without a sample is sampled now. */
  read(sandboxes: readonly Sandbox[]): SandboxMetrics[] {
    return sandboxes
      .filter((sandbox) => isRunning(sandbox) && isMeasured(sandbox.record))
      .flatMap((sandbox) => {
        const { handle, id } = sandbox.record;
        if (!this.#latest.has(handle)) this.#trySample(sandbox);
        const latest = this.#latest.get(handle);
        return latest === undefined ? [] : [{ ...latest.metrics, id: id ?? '' }];
      });
  }

  #forgetEnded(running: readonly Sandbox[]): void {
    const alive = new Set(running.map(({ record }) => record.handle));
    for (const known of [this.#latest, this.#counts, this.#shownBytes, this.#failing])
      for (const handle of known.keys()) if (!alive.has(handle)) known.delete(handle);
  }

  /** A failure, such as a disk that does not answer, loses the sample of one sandbox only. */
  #trySample(sandbox: Sandbox, isCalm = false): void {
    const { handle } = sandbox.record;
    try {
      this.#sampleOne(sandbox, isCalm);
      this.#failing.delete(handle);
    } catch (error) {
      if (!this.#failing.has(handle))
        this.#kit.logger.warn({ error, handle }, 'a sandbox cannot be measured');
      this.#failing.add(handle);
    }
  }

  #sampleOne(sandbox: Sandbox, isCalm: boolean): void {
    const { handle, id, spec } = sandbox.record;
    const slot = sandbox.run?.slot;
    if (this.#isQuiet(sandbox, isCalm)) return;
    const usage = this.#kit.cgroups.usage(handle);
    if (slot === undefined || usage === undefined) return;
    const memoryLimitBytes = limitsOf(spec).memoryMib * MIB;
    this.#showMemory(handle, memoryLimitBytes, usage.memoryBytes);
    const at = performance.now();
    const before = this.#latest.get(handle);
    if (!isMeasured(sandbox.record) || !isDue(sandbox.record, at - (before?.at ?? NEVER))) return;
    const cpuSeconds = usage.cpuMicroseconds / 1e6;
    const elapsedSeconds = before === undefined ? 0 : (at - before.at) / 1000;
    const usedSeconds = before === undefined ? 0 : cpuSeconds - before.metrics.cpuSeconds;
    const disk = this.#kit.rootfs.usage(handle);
    const traffic = this.#kit.network.traffic(slot);
    const metrics: SandboxMetrics = {
      id: id ?? '',
      sampledAt: new Date().toISOString(),
      cpuPercent:
        elapsedSeconds > 0 ? Math.max(0, Math.round((usedSeconds / elapsedSeconds) * 10_000) / 100) : 0,
      cpuSeconds,
      memoryBytes: usage.memoryBytes,
      memoryLimitBytes,
      diskUsedBytes: disk?.usedBytes ?? 0,
      diskTotalBytes: disk?.totalBytes ?? 0,
      networkReceivedBytes: traffic.receivedBytes,
      networkSentBytes: traffic.sentBytes,
      processes: sandbox.record.isolation === 'gvisor' ? this.#countOf(handle) : usage.processes,
    };
    this.#latest.set(handle, { at, wholeAt: at, metrics });
    if (sandbox.record.isolation === 'gvisor') this.#lookInside(sandbox, at);
  }

  /** A sandbox without a user process is put to rest after a while: its count cannot change until a process is started from outside. */
  #lookInside(sandbox: Sandbox, at: number): void {
    const { run, record } = sandbox;
    const quietMs = run?.quietMs() ?? 0;
    const { processes, spares, countedAt } = this.#counts.get(record.handle) ?? NOT_COUNTED;
    // Counted after the latest activity. Processes of warm sandboxes have no timers.
    const isAlone = processes === 1 + spares && at - countedAt < quietMs;
    if (isAlone && quietMs > REST_AFTER_MS) run?.rest();
    else this.#countInside(sandbox, at);
  }

  /**
   * A sandbox that used no CPU time since the last sample did no I/O and allocated nothing: one file proves it, in place of seven. `isCalm`: no
   * sandbox used any since the round before began, and not even that file is read.
   */
  #isQuiet({ record }: Sandbox, isCalm: boolean): boolean {
    const { handle, spec } = record;
    const before = this.#latest.get(handle);
    const at = performance.now();
    if (before === undefined || at - before.wholeAt >= WHOLE_MS) return false;
    const { metrics } = before;
    if (limitsOf(spec).memoryMib * MIB !== metrics.memoryLimitBytes) return false;
    if (!isCalm && this.#kit.cgroups.cpuMicroseconds(handle) / 1e6 !== metrics.cpuSeconds) return false;
    if (!isDue(record, at - before.at)) return true;
    const sampledAt = new Date().toISOString();
    this.#latest.set(handle, { ...before, at, metrics: { ...metrics, sampledAt, cpuPercent: 0 } });
    return true;
  }

  #countOf(handle: string): number {
    return (this.#counts.get(handle) ?? NOT_COUNTED).processes;
  }

  /** The host sees only gVisor's own threads: the sandbox is asked, and its answer becomes part of the latest sample. */
  #countInside({ record: { handle }, run }: Sandbox, at: number): void {
    const known = this.#counts.get(handle);
    if (run?.link.isConnected !== true || at - (known?.askedAt ?? NEVER) < COUNT_MS) return;
    this.#counts.set(handle, { ...(known ?? NOT_COUNTED), askedAt: at });
    const note = (count: ProcessCount | undefined) => {
      const latest = this.#latest.get(handle);
      // It may have ended meanwhile, or have an svc-init that cannot count.
      if (latest === undefined || count === undefined) return;
      this.#counts.set(handle, { askedAt: at, countedAt: at, ...count });
      this.#latest.set(handle, { ...latest, metrics: { ...latest.metrics, processes: count.processes } });
    };
    run.link
      .peek('svc.count', AbortSignal.timeout(COUNT_MS))
      .then((answer) => note(readProcessCount(answer)))
      .catch(() => undefined);
  }

  /** Written in place: the sandbox has this very file mounted over /proc/meminfo. */
  #showMemory(handle: string, limitBytes: number, usedBytes: number): void {
    if (this.#shownBytes.get(handle) === usedBytes) return;
    this.#shownBytes.set(handle, usedBytes);
    try {
      writeFileSync(this.#kit.guestFolders.of(handle).meminfo, renderMeminfo(limitBytes, usedBytes), {
        flag: 'r+',
      });
    } catch {
      // The sandbox is just being removed.
    }
  }
}

function isRunning({ record }: Sandbox): boolean {
  return record.state === 'running';
}

function isMeasured({ spec }: EngineRecord): boolean {
  return spec.runtime?.disable_metrics_sample !== true;
}

/** Tolerance of the interval: a sandbox that is nearly due would be late at the next look. */
function isDue({ spec }: EngineRecord, elapsedMs: number): boolean {
  const intervalMs = spec.runtime?.metrics_sample_interval_ms ?? DEFAULT_METRICS_INTERVAL_MS;
  return elapsedMs >= intervalMs - DEFAULT_METRICS_INTERVAL_MS / 2;
}
