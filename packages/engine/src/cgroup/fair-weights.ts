import { isErrno } from '@svc/contract/errno';
import { singleNumber } from './cgroup-files.ts';
import { CGROUP_PARENT, childrenOf, treeOf } from './cgroup-layout.ts';
import type { Cgroups } from './cgroups.ts';
import { CPU_WEIGHT } from './cpu-weight.ts';
import { readKernelFile, writeKernelFile } from './kernel-file.ts';

/** What a sandbox weighs among sandboxes, by its vCPUs, in shares of cgroup version 1. The kernel takes no more than `MOST_SHARES`. */
export const SHARES_PER_VCPU = 4096;
export const MOST_SHARES = 262_144;

/**
 * For each vCPU, of a sandbox that has had its part: a sixteenth of the usual. With much less it would wait for seconds where sandboxes
 * that have done little yet come one after the other.
 */
const BEHIND = { 1: 256, 2: 10 } as const;
/** With more of the processors idle than this hardly anybody waits for another. */
const MOST_IDLE = 0.5;
/** How much the time since the last look counts: a short piece of work does not make a sandbox one that computes all the time. */
const LATEST = 0.25;
/** Of its part of what sandboxes use; who uses more stands behind, and who stands there and uses less than half of this does not. */
const PART = 0.5;
/** Of what all sandboxes use; who uses less has no part in the sharing. */
const LEAST_USED = 0.01;
/** Of the processors: while others than sandboxes use less, sandboxes give way to them, and once they do, until others use more. */
const OTHERS = { fewer: 0.4, more: 0.5 } as const;
/** What all sandboxes together weigh then, of what they usually do. */
const ASIDE = 1 / 128;

/** Microseconds of all processors together. */
export interface ProcessorTimes {
  readonly idle: number;
  readonly all: number;
}

interface Known {
  readonly vcpus: number;
  readonly usual: number;
  readonly behind: number;
  usedMicroseconds: number;
  /** What it uses between two looks, lately. */
  rate: number;
  /** As the kernel says: other engines of this host weigh it, too. */
  weight: number;
}

/**
 * Lets those go first who use little of the processors. The scheduler of the kernel means to do so, and on many versions fails for a tenth
 * of a second and longer where threads of a sandbox change processors and weights are alike (docs/decisions/0148).
 * - Others than sandboxes, threads of the kernel among them, while they use less than half of the processors: sandboxes have the rest.
 * - Of sandboxes, while less than half of the processors is idle, those that use less than half of their part of what all of them get: so
 *   nobody who stands behind gets less than its part either.
 */
export class FairWeights {
  readonly #version: 1 | 2;
  readonly #weights: string | undefined;
  readonly #cgroups: Cgroups;
  readonly #readTimes: () => ProcessorTimes;
  readonly #known = new Map<string, Known>();
  #times: ProcessorTimes | undefined;
  #usedBySandboxes = 0;
  readonly #usualOfAll: number | null;
  #isAside = false;

  /** `usualOfAll`: what all sandboxes together weigh; null: that is not ours to decide. */
  constructor(
    cgroups: Cgroups,
    usualOfAll: number | null,
    readTimes: () => ProcessorTimes = readProcessorTimes,
  ) {
    this.#cgroups = cgroups;
    this.#version = cgroups.layout.version;
    this.#usualOfAll = usualOfAll;
    const tree = treeOf(cgroups.layout, 'cpu');
    this.#weights = tree && `${tree.mountpoint}/${CGROUP_PARENT}`;
    this.#readTimes = readTimes;
  }

  /**
   * To be called now and then, from the start on: what an earlier engine left behind comes forward at the first calm look. `used`: processor
   * time that all sandboxes have used.
   */
  look(used = this.#cgroups.cpuMicroseconds('.')): void {
    const [before, usedBefore] = [this.#times, this.#usedBySandboxes];
    const now = this.#readTimes();
    this.#times = now;
    this.#usedBySandboxes = used;
    if (before === undefined) return this.#learn();
    const [idle, all] = [now.idle - before.idle, now.all - before.all];
    const others = all - idle - (this.#usedBySandboxes - usedBefore);
    this.#weighAll(others < all * (this.#isAside ? OTHERS.more : OTHERS.fewer));
    if (idle > all * MOST_IDLE) return this.#bringForward();
    this.#learn();
    this.#judge();
  }

  /** All weigh what they usually do. */
  release(): void {
    this.#weighAll(false);
    this.#bringForward();
  }

  /** Another engine of this host may have weighed them meanwhile. */
  #weighAll(isAside: boolean): void {
    this.#isAside = isAside;
    if (this.#usualOfAll === null) return;
    const weight = Math.floor(this.#usualOfAll * (isAside ? ASIDE : 1));
    const wanted = Math.max(CPU_WEIGHT[this.#version].least, weight);
    if (this.#weightOf('.') !== wanted) this.#weigh('.', wanted);
  }

  #bringForward(): void {
    for (const [name, known] of this.#known) {
      known.weight = this.#weightOf(name) ?? known.weight;
      this.#place(name, known, false);
    }
    this.#known.clear();
  }

  #learn(): void {
    const names = new Set(this.#weights === undefined ? [] : childrenOf(this.#weights));
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name);
    for (const name of names) {
      const known = this.#known.get(name);
      const used = this.#cgroups.cpuMicroseconds(name);
      if (known === undefined) this.#meet(name, used);
      else {
        known.rate += (used - known.usedMicroseconds - known.rate) * LATEST;
        known.usedMicroseconds = used;
        known.weight = this.#weightOf(name) ?? known.weight;
      }
    }
  }

  #meet(name: string, usedMicroseconds: number): void {
    const vcpus = this.#vcpusOf(name);
    const weight = this.#weightOf(name);
    if (vcpus === undefined || weight === undefined) return;
    const behind = vcpus * BEHIND[this.#version];
    const usual = weight <= behind ? usualWeight(vcpus, this.#version) : weight;
    this.#known.set(name, { vcpus, usual, behind, usedMicroseconds, rate: 0, weight });
  }

  #judge(): void {
    const known = [...this.#known.values()];
    const all = known.reduce((sum, { rate }) => sum + rate, 0);
    const least = all * LEAST_USED;
    const parts = known.reduce((sum, { rate, vcpus }) => sum + (rate > least ? vcpus : 0), 0);
    for (const [name, sandbox] of this.#known) {
      const part = (all * sandbox.vcpus) / parts;
      const bound = part * PART * (sandbox.weight <= sandbox.behind ? 0.5 : 1);
      this.#place(name, sandbox, sandbox.rate > Math.max(least, bound));
    }
  }

  #place(name: string, known: Known, isBehind: boolean): void {
    const wanted = isBehind ? known.behind : known.usual;
    if (known.weight === wanted) return;
    known.weight = wanted;
    this.#weigh(name, wanted);
  }

  #weightOf(name: string): number | undefined {
    return singleNumber(readKernelFile(this.#fileOf(name)) ?? '');
  }

  #weigh(name: string, weight: number): void {
    try {
      writeKernelFile(this.#fileOf(name), String(weight));
    } catch (error) {
      // A tree that is not ours to write stays as it is.
      if (!isErrno(error, 'EROFS', 'EACCES', 'EPERM')) throw error;
    }
  }

  #fileOf(name: string): string {
    return `${this.#weights}/${name}/${CPU_WEIGHT[this.#version].file}`;
  }

  /** Undefined when it is gone, or has no quota yet. */
  #vcpusOf(name: string): number | undefined {
    const folder = `${this.#weights}/${name}`;
    const text =
      this.#version === 2
        ? readKernelFile(`${folder}/cpu.max`)
        : `${readKernelFile(`${folder}/cpu.cfs_quota_us`)} ${readKernelFile(`${folder}/cpu.cfs_period_us`)}`;
    const [quota = 0, period = 0] = (text ?? '').split(/\s+/).map(Number);
    return quota > 0 && period > 0 ? Math.max(1, Math.round(quota / period)) : undefined;
  }
}

/** As runtimes translate shares to version 2; they may differ a little in how. */
function usualWeight(vcpus: number, version: 1 | 2): number {
  const shares = Math.min(MOST_SHARES, vcpus * SHARES_PER_VCPU);
  return version === 1 ? shares : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

/** The same for programs on every host. https://man7.org/linux/man-pages/man5/proc_stat.5.html */
const TICK_MICROSECONDS = 10_000;

/** Since the host was started. */
function readProcessorTimes(): ProcessorTimes {
  const [line = ''] = (readKernelFile('/proc/stat') ?? '').split('\n', 1);
  // user nice system idle iowait irq softirq steal; what follows is counted in the first two already.
  const times = line
    .split(/\s+/)
    .slice(1, 9)
    .map((ticks) => Number(ticks) * TICK_MICROSECONDS);
  const [, , , idle = 0, waiting = 0] = times;
  return { idle: idle + waiting, all: times.reduce((sum, time) => sum + time, 0) };
}
