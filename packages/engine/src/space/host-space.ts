import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { findDiskFault } from '@svc/contract/node-disk-fault';
import type { SpaceView } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import { runTool } from '../host/run-tool.ts';
import { Ballast } from './ballast.ts';
import { hostIsFull, isOfFullHost } from './host-is-full.ts';
import { readHostWrites, type HostWrites } from './host-writes.ts';
import { distributeSpace } from './distribute-space.ts';
import { GROWTH_BYTES, GrantedSpace } from './granted-space.ts';
import { WatchedDisk, type MountedDisk } from './watched-disk.ts';

const MIB = 2 ** 20;
/** Exists in the data folder while an engine runs. */
const PID_FILE = 'engine.pid';
/** The reserve that guests, images and snapshots cannot use: a tenth of the host's disk and at most this. */
const MOST_RESERVE_BYTES = 1024 * MIB;
/** The ballast beyond the reserve, allocated so that it can be released: a fortieth of the disk and at most this. */
const MOST_BALLAST_BYTES = 128 * MIB;
const BALLAST_PIECES = 8;
/** The delay between the first two pieces; it doubles each time. A program that fills the disk takes a piece too, and most give up by then. */
const BALLAST_PAUSE_MS = 1000;
const CALM_MS = 1000;
/** The interval while the disks could use more than is free. A guest's writes within it must fit into its grant. */
const TIGHT_MS = 250;
const LEAST_MS = 50;
/**
 * While the host has written less than this since the last check, no disk comes near the end of its grant, and the slow interval suffices:
 * this part of the smallest grant that could be larger, or so much.
 */
const FEW_PART = 1 / 16;
const FEW_BYTES = MIB;
/** The assumed highest write rate: checks are more frequent the less space is left. */
const FASTEST_BYTES_PER_MS = 2 * MIB;
/** The least grant of a new disk, where there is space. */
const LEAST_GRANT_BYTES = 16 * MIB;
/** The part that is granted. The rest is for writes of the host itself, which would otherwise reduce every grant. */
const SHARED_PART = 15 / 16;
/** The weight of a disk that is being written to. */
const WRITER_WEIGHT = 16;

export interface HostSpaceOptions {
  /** The data folder. */
  readonly folder: string;
  readonly logger: Logger;
  /** Bytes of the host's disk that are kept for the engine and the server; a share of the disk when absent. */
  readonly reserveBytes?: number;
  /** Called for each new disk. */
  readonly onWatch?: (disk: MountedDisk) => void;
  /** Called at every check. */
  readonly onLook?: () => void;
  readonly readWrites?: () => HostWrites;
}

/** A disk, and its growth since the last check. */
interface Looked {
  readonly disk: WatchedDisk;
  readonly grewBytes: number;
}

/** The default reserve for a disk of this size. */
export function usualReserve(totalBytes: number): number {
  return Math.min(MOST_RESERVE_BYTES, Math.floor(totalBytes / 10));
}

/**
 * Prevents the guests from filling the disk of the host: their disks are sparse, so together they may be larger than the free space.
 * Every mounted disk is granted a part of the space; a write beyond it fails inside with ENOSPC at once. The sum of the grants, of
 * acknowledged data that is not on the host's disk yet, and of the reserve never exceeds the free space, so no acknowledged write fails
 * later, also while no engine runs. When the space is used up nothing new is started; the reserve is for stops and removals.
 */
export class HostSpace {
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #reserveBytes: number;
  readonly #ballast: Ballast;
  readonly #onWatch: (disk: MountedDisk) => void;
  readonly #onLook: () => void;
  readonly #readWrites: () => HostWrites;
  readonly #disks = new Map<string, WatchedDisk>();
  /** Called when space runs short and when it is back. */
  onTurn: (isShort: boolean) => void = () => undefined;
  #isShort = false;
  #roomBytes = 0;
  #owedBytes = 0;
  /** Not granted to any disk at the last check; undefined before the first. */
  #sparedBytes: number | undefined;
  /** The last distribution; undefined when disks have come or gone since. */
  #shared: GrantedSpace | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isTakingBallast = false;
  #giveBackAt = 0;
  #ballastPauseMs = BALLAST_PAUSE_MS;
  readonly #settling = new WeakSet<WatchedDisk>();
  #hasWarned = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The values of the last check. */
  #host = { dirtiedBytes: 0, sentBytes: 0, freeBytes: 0 };
  #fewBytes = FEW_BYTES;

  constructor({ folder, logger, reserveBytes, onWatch, onLook, readWrites }: HostSpaceOptions) {
    this.#folder = folder;
    this.#onWatch = onWatch ?? (() => undefined);
    this.#onLook = onLook ?? (() => undefined);
    this.#readWrites = readWrites ?? readHostWrites;
    this.#logger = logger;
    const { totalBytes } = readDisk(folder);
    this.#reserveBytes = reserveBytes ?? usualReserve(totalBytes);
    const ballastBytes = Math.min(MOST_BALLAST_BYTES, Math.floor(totalBytes / 40));
    this.#ballast = new Ballast(join(folder, 'ballast'), ballastBytes, BALLAST_PIECES);
  }

  get reserveBytes(): number {
    return this.#reserveBytes;
  }

  /** Checks now and then periodically until `stop`. */
  start(): void {
    if (this.#mayHaveChanged()) this.#look();
    const soonest = Math.max(LEAST_MS, this.#roomBytes / FASTEST_BYTES_PER_MS);
    this.#timer = setTimeout(() => this.start(), Math.min(soonest, this.#isTight ? TIGHT_MS : CALM_MS));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /**
   * Checks that `neededBytes` can be written to `folder`, the data folder when absent.
   * @throws PlatformError `insufficient_storage`, and `unavailable` when the disk takes no writes
   */
  require(neededBytes = 0, folder = this.#folder): void {
    const fault = this.#findFault();
    if (fault !== undefined) throw fault;
    const { freeBytes } = readDisk(folder);
    const reserveBytes = this.#reserveBytes;
    const leftBytes = freeBytes - reserveBytes - this.#owedBytes - neededBytes;
    if (leftBytes >= this.#leastRoomBytes && !this.#isShort) return;
    throw new PlatformError('insufficient_storage', NO_SPACE, {
      details: { freeBytes, neededBytes, reserveBytes },
    });
  }

  /** The error of a disk that accepts no writes; undefined: it accepts them. */
  #findFault(): PlatformError | undefined {
    return findDiskFault(join(this.#folder, PID_FILE), 'engine');
  }

  /** The error to report for a call that failed because the disk is full or accepts no writes; undefined for other failures. */
  explain(error: unknown): PlatformError | undefined {
    return this.#findFault() ?? (isOfFullHost(error, this.#folder) ? hostIsFull(error) : undefined);
  }

  /** Limits a disk to its grant from now on. Can be repeated. */
  watch(disk: MountedDisk): void {
    try {
      const known = this.#disks.get(nameOf(disk));
      if (known?.disk.device === disk.device && known.sample() !== undefined) return;
      if (this.#sparedBytes === undefined) this.#look();
      const watched = new WatchedDisk(disk);
      if (watched.sample() === undefined) return;
      this.#disks.set(nameOf(disk), watched);
      this.#onWatch(disk);
      this.#shared = undefined;
      const spared = this.#sparedBytes ?? 0;
      const granted = Math.min(watched.usableBytes, Math.floor(spared / 2));
      watched.grant(granted);
      this.#sparedBytes = spared - granted;
      // Many new disks between two checks would halve the ungranted space until nothing is left.
      if (granted < Math.min(watched.usableBytes, LEAST_GRANT_BYTES)) this.#look();
    } catch (error) {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      this.#logger.warn(
        { err: error },
        'guests can fill the disk of the host: sysfs has no ext4 entries to limit their disks',
      );
    }
  }

  forget(disk: Pick<MountedDisk, 'kind' | 'key'>): void {
    if (this.#disks.delete(nameOf(disk))) this.#shared = undefined;
  }

  view(): SpaceView {
    const promised = this.#disks.values().map((disk) => disk.usableBytes + (disk.latest?.owedBytes ?? 0));
    return {
      ...readDisk(this.#folder),
      reserveBytes: this.#reserveBytes,
      ballastBytes: this.#ballast.heldBytes,
      promisedBytes: promised.reduce((sum, bytes) => sum + bytes, 0),
      owedBytes: this.#owedBytes,
      isShort: this.#isShort,
      fault: this.#findFault()?.message ?? null,
    };
  }

  /** The least free space for starting something new. */
  get #leastRoomBytes(): number {
    return this.#reserveBytes / 16;
  }

  get #isTight(): boolean {
    return this.#isShort || this.#disks.values().some((disk) => disk.grantedBytes < disk.usableBytes);
  }

  /** Whether the host has written enough for a check before the slow interval. */
  #mayHaveChanged(): boolean {
    if (this.#isShort || performance.now() - this.#lookedAt >= CALM_MS - LEAST_MS) return true;
    const { dirtiedBytes, sentBytes, freeBytes } = this.#readHost();
    const few = this.#fewBytes;
    return !(
      dirtiedBytes - this.#host.dirtiedBytes < few &&
      sentBytes - this.#host.sentBytes < few &&
      this.#host.freeBytes - freeBytes < few
    );
  }

  #readHost() {
    return { ...this.#readWrites(), freeBytes: readDisk(this.#folder).freeBytes };
  }

  #look(): void {
    try {
      this.#lookedAt = performance.now();
      this.#host = this.#readHost();
      const { freeBytes } = this.#host;
      const looked = this.#sampleAll();
      const disks = looked.map(({ disk }) => disk);
      this.#owedBytes = disks.reduce((sum, { latest }) => sum + (latest?.owedBytes ?? 0), 0);
      const roomBytes = freeBytes - this.#reserveBytes - this.#owedBytes;
      this.#roomBytes = roomBytes;
      this.#judge(roomBytes);
      this.#share(looked, this.#isShort ? 0 : roomBytes);
      this.#fewBytes = fewOf(disks);
      this.#balance(freeBytes, roomBytes);
      if (this.#isShort) this.#settle(disks);
      this.#onLook();
    } catch (error) {
      // Checked again soon; until then the grants stay.
      this.#logger.error({ err: error }, 'the space of the host could not be checked');
    }
  }

  /** With hysteresis: the short state ends at twice the space at which it begins. */
  #judge(roomBytes: number): void {
    const isShort = roomBytes < this.#leastRoomBytes * (this.#isShort ? 2 : 1);
    if (isShort === this.#isShort) return;
    this.#isShort = isShort;
    const view = this.view();
    if (isShort) this.#logger.warn(view, 'the disk of the host is nearly full: nothing new is begun');
    else this.#logger.info(view, 'the disk of the host has space again');
    this.onTurn(isShort);
  }

  #sampleAll(): Looked[] {
    const looked: Looked[] = [];
    for (const [name, disk] of this.#disks) {
      const before = disk.latest;
      const grantedBytes = disk.grantedBytes;
      const now = disk.sample();
      if (now === undefined) this.#disks.delete(name);
      else looked.push({ disk, grewBytes: now.usedBytes - (before?.usedBytes ?? 0) });
      this.#shared?.note(before, now, grantedBytes);
    }
    return looked;
  }

  /** Grants space anew unless the last distribution is still valid: each grant is a call, and most disks do not change. */
  #share(looked: readonly Looked[], roomBytes: number): void {
    if (this.#shared?.holds(roomBytes) === true) return;
    const givenBytes = Math.floor(roomBytes * SHARED_PART);
    const requests = looked.map(({ disk, grewBytes }) => ({
      wantedBytes: disk.usableBytes,
      weight: grewBytes > GROWTH_BYTES ? WRITER_WEIGHT : 1,
    }));
    // For the next disk that is mounted: it may write at once.
    const newcomer = { wantedBytes: givenBytes, weight: 1 };
    const shares = distributeSpace([...requests, newcomer], givenBytes);
    this.#sparedBytes = shares.pop() ?? 0;
    for (const [index, { disk }] of looked.entries()) disk.grant(shares[index] ?? 0);
    this.#shared = new GrantedSpace(givenBytes);
  }

  /** Flushes acknowledged data while there is space for it, which other programs may use too. */
  #settle(disks: readonly WatchedDisk[]): void {
    for (const watched of disks) {
      if ((watched.latest?.owedBytes ?? 0) === 0 || this.#settling.has(watched)) continue;
      this.#settling.add(watched);
      runTool('sync', ['--file-system', watched.disk.mountPoint])
        .catch((error: unknown) => this.#logger.warn({ err: error }, 'a disk could not be written out'))
        .finally(() => this.#settling.delete(watched));
    }
  }

  #balance(freeBytes: number, roomBytes: number): void {
    const ballast = this.#ballast;
    if (freeBytes < ballast.pieceBytes / 2) this.#giveBack(freeBytes);
    if (!this.#isShort) this.#ballastPauseMs = BALLAST_PAUSE_MS;
    if (ballast.isWhole || this.#isShort || this.#isTakingBallast) return;
    if (roomBytes < 2 * ballast.missingBytes) return;
    this.#isTakingBallast = true;
    ballast
      .takeAgain()
      .then(() => (this.#isTakingBallast = false))
      // Not retried: `isTakingBallast` stays set on a file system that cannot allocate in advance.
      .catch((error: unknown) =>
        this.#logger.warn({ err: error }, 'ballast could not be allocated on the disk'),
      );
  }

  #giveBack(freeBytes: number): void {
    if (performance.now() < this.#giveBackAt || !this.#ballast.giveBack()) return;
    this.#giveBackAt = performance.now() + this.#ballastPauseMs;
    this.#ballastPauseMs *= 2;
    this.#logger.warn(
      { freeBytes, leftBytes: this.#ballast.heldBytes },
      'the disk of the host is full: ballast is released',
    );
  }
}

const NO_SPACE =
  'The disk of the host is nearly full; remove sandboxes, snapshots, volumes or images that are not needed, or have its operator free some';

function fewOf(disks: readonly WatchedDisk[]): number {
  const needy = disks.filter(({ grantedBytes, usableBytes }) => grantedBytes < usableBytes);
  const smallest = needy.reduce((least, { grantedBytes }) => Math.min(least, grantedBytes), Infinity);
  return Number.isFinite(smallest) ? Math.max(FEW_BYTES, smallest * FEW_PART) : FEW_BYTES;
}

function nameOf({ kind, key }: Pick<MountedDisk, 'kind' | 'key'>): string {
  return `${kind} ${key}`;
}

function readDisk(folder: string): { readonly totalBytes: number; readonly freeBytes: number } {
  const { blocks, bavail, bsize } = statfsSync(folder);
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}
