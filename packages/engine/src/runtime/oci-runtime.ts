import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import type { Isolation } from '@svc/contract/orchestrator';
import type { Cgroups } from '../cgroup/cgroups.ts';
import type { HostCalls, Streams } from '../host/host-calls.ts';
import { isOfLostHelper } from '../host/retry-lost-helper.ts';
import { Bundles } from './bundle.ts';
import { CpuAllocator } from './cpu-allocator.ts';
import type { Bundle } from './bundle.ts';
import { readHostAbilities } from './host-abilities.ts';
import type { HostAbilities } from './host-abilities.ts';
import { launch } from './launch.ts';
import { mountsBelow } from './mounts-below.ts';
import type { GuestConfig } from './oci-config.ts';
import { eldestOf, isRunning } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { probeRuntime } from './probe.ts';
import type { ProbeMeans } from './probe.ts';
import type { Runtime, RuntimeProbe, RuntimeSpec, Started } from './runtime.ts';
import { startFailure } from './start-failure.ts';
import { killUnfinishedStart, whenStartEnded } from './unfinished-start.ts';

/** The differences between OCI runtimes. */
export interface OciProgram {
  readonly name: string;
  readonly isolation: Isolation;
  /** The program; looked up in PATH unless absolute. */
  readonly program: string;
  /** The streams that PID 1 of the sandbox inherits. */
  readonly streams: Streams;
  /** A sandbox has a kernel of its own, a program of the host. */
  readonly hasKernel?: boolean;
  /** A folder that must be empty for the program. */
  readonly cover?: string;
  /** `allocateCpus` returns the first CPU for a pinned sandbox. */
  configure(spec: RuntimeSpec, host: HostAbilities, allocateCpus: () => number): GuestConfig;
  /** The command that starts a bundle and ends when PID 1 runs. */
  command(handle: string, bundle: Bundle): readonly string[];
  /** Called when PID 1 runs. */
  onStarted?(spec: RuntimeSpec): void;
}

/** The timer slack that Linux gives each program. */
const PRECISE_NS = 50_000;
/**
 * The timer slack of a resting sandbox. gVisor's kernel polls every millisecond also while idle, which takes some 25 ms of CPU a second for
 * each sandbox. With the slack Linux may delay these timers; input wakes the sandbox at once all the same.
 */
const IDLE_SLACK_NS = 1_000_000_000;

/**
 * Runs sandboxes with an OCI runtime's command line, one process per start and none afterwards: liveness is read from /proc, and the
 * runtime's kill and delete (signals, cgroups, its records) are done here in a tenth of the time.
 */
export class OciRuntime implements Runtime {
  readonly name: string;
  readonly isolation: Isolation;
  readonly #program: OciProgram;
  readonly #cgroups: Cgroups;
  readonly #hostCalls: OciOptions['hostCalls'];
  readonly #bundles: Bundles;
  readonly #host: HostAbilities;
  readonly #probeMeans: ProbeMeans;
  readonly #inits = new Map<string, ProcessIdentity>();
  /** Processes of the host, by handle. */
  readonly #kernels = new Map<string, readonly number[]>();
  readonly #cpus: CpuAllocator;

  /** `folder` is used by this runtime only; it need not survive a reboot. */
  constructor(program: OciProgram, options: OciOptions) {
    this.name = program.name;
    this.isolation = program.isolation;
    this.#program = program;
    this.#cgroups = options.cgroups;
    this.#hostCalls = options.hostCalls;
    this.#bundles = new Bundles(join(options.folder, 'bundles'));
    this.#host = readHostAbilities(options.cgroups.layout);
    this.#cpus = options.cpus ?? new CpuAllocator(this.#host.cpus.length);
    this.#probeMeans = options.probe;
  }

  probe(signal: AbortSignal): Promise<RuntimeProbe> {
    return probeRuntime(this, this.#program.program, this.#cgroups.layout, this.#probeMeans, signal);
  }

  async start(spec: RuntimeSpec, signal: AbortSignal): Promise<Started> {
    const allocateCpus = () => this.#cpus.allocate(spec.handle, spec.vcpus);
    const config = this.#program.configure(spec, this.#host, allocateCpus);
    this.#cgroups.place(spec.handle, spec.cgroupParent);
    const bundle = this.#bundles.create(spec.handle, config.json);
    try {
      this.#cgroups.makeParent(spec.handle);
      await this.#launch(spec, bundle, signal);
      this.#program.onStarted?.(spec);
      return { rlimits: config.rlimits };
    } catch (error) {
      // A sandbox that cannot be removed now stays in `list`, to be removed again; the first error is the useful one.
      await this.remove(spec.handle).catch(() => undefined);
      throw error;
    }
  }

  async rest(handle: string): Promise<void> {
    await this.#setPrecision(handle, IDLE_SLACK_NS, false);
  }

  async wake(handle: string): Promise<void> {
    await this.#setPrecision(handle, PRECISE_NS, true);
  }

  async #setPrecision(handle: string, slackNs: number, isInterrupt: boolean): Promise<void> {
    if (this.#program.hasKernel !== true) return;
    const kernel = this.#kernels.get(handle) ?? this.#findKernel(handle);
    this.#kernels.set(handle, kernel);
    // SAFETY: another process that has come to one of these ids loses some precision, or gets back what every program has, and one that is written in Go is interrupted for nothing.
    await this.#hostCalls.setPrecision(kernel, slackNs, isInterrupt);
  }

  /** The ancestors of all processes that run guest code, now and later. */
  #findKernel(handle: string): readonly number[] {
    return eldestOf(this.#cgroups.processIds(handle));
  }

  async isAlive(handle: string): Promise<boolean> {
    const init = this.#inits.get(handle) ?? this.#bundles.init(handle) ?? this.#unseenInit(handle);
    if (init === undefined) return false;
    this.#inits.set(handle, init);
    return isRunning(init);
  }

  /**
   * PID 1 of a start that succeeded after the engine that began it was killed: svc-init connects before the runtime's program ends,
   * so the sandbox may have been in use already.
   */
  #unseenInit(handle: string): ProcessIdentity | undefined {
    const pid = this.#bundles.claimedPid(handle);
    // SAFETY: only a process in the sandbox's own cgroup can be its PID 1; the id may long belong to another.
    if (pid === undefined || !this.#cgroups.processIds(handle).includes(pid)) return undefined;
    return this.#bundles.recordInitOf(handle);
  }

  async kill(handle: string): Promise<void> {
    // A start that was aborted, or left by an earlier engine, must not complete after the cleanup.
    if (this.#bundles.isUnfinished(handle)) {
      await killUnfinishedStart(this.#hostCalls, this.#bundles.folder(handle));
    }
    await this.#cgroups.kill(handle);
  }

  async remove(handle: string): Promise<void> {
    await this.kill(handle);
    await this.#cgroups.remove(handle);
    try {
      this.#bundles.remove(handle);
    } catch (error) {
      // A killed runc can leave a mount of its own program among its records.
      if (!isErrno(error, 'EBUSY')) throw error;
      for (const path of mountsBelow(this.#bundles.folder(handle))) await this.#hostCalls.unmount(path);
      this.#bundles.remove(handle);
    }
    this.#inits.delete(handle);
    this.#kernels.delete(handle);
    this.#cpus.free(handle);
  }

  /** Finds their cgroups again, too: those of an earlier engine may be below parents of their own. */
  async list(): Promise<readonly string[]> {
    const handles = this.#bundles.handles();
    for (const handle of handles) this.#cgroups.place(handle, this.#bundles.cgroupParent(handle));
    return handles;
  }

  async #launch(spec: RuntimeSpec, bundle: Bundle, signal: AbortSignal): Promise<void> {
    const { handle } = spec;
    const command = this.#program.command(handle, bundle);
    const failed = async (exitCode: number | null, cause?: unknown) =>
      startFailure(this.name, spec, { exitCode, log: await this.#bundles.log(bundle), cause });

    const { streams, cover } = this.#program;
    const exitCode = await launch(
      this.#hostCalls,
      { command, streams, cover, claim: bundle.folder },
      signal,
    ).catch(async (error: unknown) => {
      signal.throwIfAborted();
      if (isOfLostHelper(error) && (await this.#endedWell(spec.handle, signal))) return 0;
      throw await failed(null, error);
    });
    if (exitCode !== 0) throw await failed(exitCode);
    const init = this.#bundles.recordInit(bundle);
    if (init === undefined) throw await failed(exitCode);
    this.#inits.set(handle, init);
  }

  /**
   * Whether a program whose helper was lost has started PID 1. It continues without the helper, and svc-init connects before it ends: the
   * sandbox may be in use already.
   */
  async #endedWell(handle: string, signal: AbortSignal): Promise<boolean> {
    await whenStartEnded(this.#hostCalls, this.#bundles.folder(handle), signal);
    return this.#unseenInit(handle) !== undefined;
  }
}

export interface OciOptions {
  readonly folder: string;
  readonly cgroups: Cgroups;
  readonly hostCalls: Pick<HostCalls, 'launch' | 'unmount' | 'isClaimed' | 'setPrecision'>;
  readonly probe: ProbeMeans;
  /** Shared by all runtimes that pin sandboxes; a new one by default. */
  readonly cpus?: CpuAllocator;
}
