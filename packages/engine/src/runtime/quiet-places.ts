import { isErrno } from '@svc/contract/errno';
import { pinnedCpus } from './cpu-set.ts';
import type { CpuPlaces } from './cpu-places.ts';
import type { Cgroups } from '../cgroup/cgroups.ts';

/** How often `look` is meant to be called. */
export const LOOK_MS = 100;
/** What was read longer ago says nothing about this moment. */
const STALE_MS = 2000;
/** So many are judged at a look, the next ones at the next: reading takes some 10 µs. */
const JUDGED_AT_ONCE = 64;
/** Of what its vCPUs could do: one that uses more, from one time it is judged to the next, computes. */
const COMPUTES = 0.6;
/** One that computed and uses less than this, over a longer time, is quiet again. */
const IS_QUIET = 0.2;
const QUIET_MS = 900;

interface Known {
  readonly vcpus: number;
  /** CPU time that it had used when it was last read. */
  usedMicroseconds: number;
  at: number;
}

type PlacedCgroups = Pick<Cgroups, 'cpuMicroseconds' | 'setCpus'>;

/**
 * Where sandboxes run that share no kernel with the host and so need no pin to count their CPUs. One that uses little stays on as many CPUs
 * as it has vCPUs: its threads wake each other all the time, and on one CPU that needs no other, which has to be woken first and takes long.
 * One that computes for a while runs anywhere: its threads work side by side, and it never waits for another beside an idle CPU
 * (docs/decisions/0149).
 */
export class QuietPlaces {
  readonly #cgroups: PlacedCgroups;
  readonly #cpus: readonly number[];
  readonly #places: CpuPlaces;
  readonly #pinned = new Map<string, Known>();
  readonly #anywhere = new Map<string, Known>();
  #turn: Iterator<[string, Known]> = this.#pinned.entries();
  #usedByAll = 0;
  #at = 0;

  /** `cpus`: those that a sandbox can be given; none where that is impossible. `places`: shared with those that are always pinned. */
  constructor(cgroups: PlacedCgroups, cpus: readonly number[], places: CpuPlaces) {
    this.#cgroups = cgroups;
    this.#cpus = cpus;
    this.#places = places;
  }

  /** It runs, and its kernel has counted its CPUs. */
  settle(handle: string, vcpus: number): void {
    if (vcpus >= this.#cpus.length) return;
    this.#pin(handle, { vcpus, usedMicroseconds: 0, at: Number.NEGATIVE_INFINITY });
  }

  /** It has ended. */
  leave(handle: string): void {
    this.#pinned.delete(handle);
    this.#anywhere.delete(handle);
    this.#places.leave(handle);
  }

  /** Every `LOOK_MS`. `used`: by all together. While that is less than one that computes would use, nothing else is read. */
  look(at = performance.now(), used = this.#cgroups.cpuMicroseconds('.')): void {
    const mayCompute = used - this.#usedByAll > (at - this.#at) * 1000 * COMPUTES;
    [this.#usedByAll, this.#at] = [used, at];
    for (const [handle, known] of this.#anywhere) this.#gather(handle, known, at);
    if (mayCompute) this.#judgeNext(at);
  }

  /** Nobody looks from now on: all may compute. */
  release(): void {
    for (const [handle, known] of this.#pinned) this.#open(handle, known);
    this.#anywhere.clear();
  }

  #judgeNext(at: number): void {
    for (let count = Math.min(JUDGED_AT_ONCE, this.#pinned.size); count > 0; count--) {
      let next = this.#turn.next();
      if (next.done === true) {
        this.#turn = this.#pinned.entries();
        next = this.#turn.next();
      }
      if (next.done !== true) this.#judge(...next.value, at);
    }
  }

  #judge(handle: string, known: Known, at: number): void {
    const isStale = at - known.at > STALE_MS;
    const part = this.#partSince(handle, known, at);
    if (!isStale && part > COMPUTES) this.#open(handle, known);
  }

  #gather(handle: string, known: Known, at: number): void {
    if (at - known.at >= QUIET_MS && this.#partSince(handle, known, at) < IS_QUIET) this.#pin(handle, known);
  }

  /** How much of its vCPUs it has used since it was last read. */
  #partSince(handle: string, known: Known, at: number): number {
    const used = this.#cgroups.cpuMicroseconds(handle);
    const part = (used - known.usedMicroseconds) / ((at - known.at) * 1000 * known.vcpus);
    [known.usedMicroseconds, known.at] = [used, at];
    return part;
  }

  #pin(handle: string, known: Known): void {
    const { vcpus } = known;
    this.#anywhere.delete(handle);
    this.#pinned.set(handle, known);
    this.#set(handle, pinnedCpus(this.#cpus, vcpus, this.#places.take(handle, vcpus)) ?? '');
  }

  #open(handle: string, known: Known): void {
    this.#pinned.delete(handle);
    this.#anywhere.set(handle, known);
    this.#places.leave(handle);
    this.#set(handle, this.#cpus.join(','));
  }

  #set(handle: string, cpus: string): void {
    try {
      this.#cgroups.setCpus(handle, cpus);
    } catch (error) {
      // Whoever looks after this host gave sandboxes other CPUs, or none of this is ours to write: they run where they may.
      if (!isErrno(error, 'EACCES', 'EBUSY', 'EINVAL', 'ENOSPC', 'EPERM', 'EROFS')) throw error;
    }
  }
}
