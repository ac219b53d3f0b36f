import type { Isolation } from './isolation.ts';

/** The disk of the host, in bytes. */
export interface SpaceView {
  readonly totalBytes: number;
  readonly freeBytes: number;
  readonly reserveBytes: number;
  /** Allocated in advance, to be released when the disk is full. */
  readonly ballastBytes: number;
  /** The space that mounted disks and volumes may still use: more than is free when they are overcommitted. */
  readonly promisedBytes: number;
  /** Acknowledged to guests and not on the host's disk yet. */
  readonly owedBytes: number;
  /** While true, nothing new is started, and no guest gets more. */
  readonly isShort: boolean;
  /** Why the disk accepts no writes; null: it accepts them. */
  readonly fault: string | null;
}

/** Use of the disk by owner. Layers that images share are counted for each image. */
export interface SpaceUser {
  readonly kind: 'sandbox' | 'volume' | 'snapshot' | 'image';
  readonly id: string;
  readonly bytes: number;
}

/** Sandboxes that are kept started because similar ones were requested recently. They have no owner. */
export interface PoolView {
  /** Maximum number of warm sandboxes; 0: none are kept. */
  readonly max: number;
  readonly waiting: readonly {
    readonly reference: string;
    readonly isolation: Isolation;
    readonly vcpus: number;
    readonly memoryMib: number;
    readonly diskMib: number;
    /** True when its image is private: only callers who may use that image get this sandbox. */
    readonly isPrivate: boolean;
    readonly createdAt: string;
    /** The programs that run in it in advance. */
    readonly programs: readonly string[];
  }[];
  /** Creates that got a warm sandbox, and creates that would have matched one, since the engine started. */
  readonly handedOut: number;
  readonly missed: number;
  /** Removed because demand stopped or the host needed the memory. */
  readonly givenBack: number;
}

/** One host of sandboxes. */
export interface NodeReport {
  /** As the operator named it; null: the only one. */
  readonly name: string | null;
  /** Why no sandbox can run there; null: they can. */
  readonly problem: string | null;
  /** Null while it is away. */
  readonly description: OrchestratorDescription | null;
}

/** What a view is about; `node` is null for the only node. */
export type OfNode<View> = View & { readonly node: string | null };

export interface OrchestratorDescription {
  readonly version: string;
  /** The class that sandboxes get; null when this host can run none. */
  readonly isolation: string | null;
  /** Why it is null. */
  readonly problem: string | null;
  /** Every way to isolate that was looked for, usable or not. */
  readonly classes: readonly IsolationClass[];
  /** How many there are, in any state. */
  readonly sandboxes: number;
}

export interface IsolationClass {
  readonly isolation: string;
  /** The program behind it. */
  readonly runtime: string;
  readonly isUsable: boolean;
  /** Which version runs, or what is missing and how to get it. */
  readonly reason: string;
}
