import { closeSync, openSync, readFileSync, write } from 'node:fs';
import { treeOf } from '../cgroup/cgroup-layout.ts';
import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import { ownPath } from '../cgroup/own-path.ts';

/** Shorter than the time after which the kernel makes the next move wait again. */
const REPEAT_MS = 5;

/**
 * Makes moves of processes to another cgroup quick while a runtime starts. The first move waits some 10 ms for an RCU grace period; a move
 * within a few milliseconds of another does not. runsc moves itself twice during a start. So a thread of the engine's pool moves the engine
 * to its own cgroup every 5 ms, and waits instead of runsc.
 */
export class QuickMoves {
  readonly #layout: CgroupLayout;
  #holders = 0;
  #isMoving = false;

  constructor(layout: CgroupLayout) {
    this.#layout = layout;
  }

  /** Keeps moves quick until it is disposed of. */
  hold(): Disposable {
    this.#holders += 1;
    if (!this.#isMoving) this.#begin();
    return { [Symbol.dispose]: () => void (this.#holders -= 1) };
  }

  #begin(): void {
    const file = ownProcesses(this.#layout, readFileSync('/proc/self/cgroup', 'latin1'));
    const descriptor = file === undefined ? undefined : openForWriting(file);
    if (descriptor === undefined) return;
    this.#isMoving = true;
    this.#move(descriptor);
  }

  /** The result is irrelevant: the kernel waits before it checks the request. */
  #move(descriptor: number): void {
    // SAFETY: 0 is this process, and the cgroup is its own: nothing changes.
    write(descriptor, '0', () => {
      if (this.#holders > 0) {
        setTimeout(() => this.#move(descriptor), REPEAT_MS).unref();
        return;
      }
      this.#isMoving = false;
      closeSync(descriptor);
    });
  }
}

/** The file that lists the processes of our own cgroup, in a tree where limits are kept. `own` is the text of /proc/self/cgroup. */
export function ownProcesses(layout: CgroupLayout, own: string): string | undefined {
  const tree = treeOf(layout, 'pids') ?? layout.trees[0];
  if (tree === undefined) return undefined;
  const path = ownPath(tree, 'pids', own);
  return path === undefined ? undefined : `${tree.mountpoint}${path.replace(/\/$/, '')}/cgroup.procs`;
}

function openForWriting(file: string): number | undefined {
  try {
    return openSync(file, 'r+');
  } catch {
    // No permission: starts take a little longer.
    return undefined;
  }
}
