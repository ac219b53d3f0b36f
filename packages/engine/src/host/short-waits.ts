import { accessSync, constants, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readKernelFile, writeKernelFile } from '../cgroup/kernel-file.ts';
import { removeFile } from './run-files.ts';

const [LONG, SHORT] = ['0', '1'];

/**
 * Some calls into the kernel wait until no CPU uses the old state of something any more: 7 to 20 ms, of which nobody has anything, or some
 * 0.1 ms when the kernel asks every CPU at once (`rcu_expedited`). A process that is moved to another cgroup waits so, and each of the
 * programs that make up a gVisor sandbox when it starts. Mounts are short at any time.
 *
 * It is a setting of the whole host. While it holds, each such wait interrupts the CPUs that are busy; so it holds while somebody waits
 * for a start, and no longer. Where it holds already it is somebody else's to end: the operator's, or another engine's.
 */
export class ShortWaits {
  readonly #setting: string;
  readonly #mark: string;
  #holders = 0;
  #isOurs = false;

  private constructor(setting: string, mark: string) {
    this.#setting = setting;
    this.#mark = mark;
  }

  /**
   * Null when this host lets nobody choose. `mark` is a file that lives until the next boot and says that waits were long before us: one
   * that is there is of an engine that was killed, maybe while it held them short.
   */
  static open(mark: string, folder = '/sys/kernel'): ShortWaits | null {
    const setting = join(folder, 'rcu_expedited');
    // Real-time kernels, and those booted with `rcu_normal`, are not to interrupt their CPUs.
    if (readValue(join(folder, 'rcu_normal')) !== LONG || !isWritable(setting)) return null;
    const waits = new ShortWaits(setting, mark);
    waits.#isOurs = existsSync(mark);
    waits.#giveBack();
    return waits;
  }

  /** From now until it is disposed of. */
  hold(): Disposable {
    this.#holders += 1;
    if (this.#holders === 1 && readValue(this.#setting) === LONG) this.#take();
    return {
      [Symbol.dispose]: () => {
        this.#holders -= 1;
        if (this.#holders === 0) this.#giveBack();
      },
    };
  }

  /** Leaves the host as it was found. */
  close(): void {
    this.#giveBack();
    removeFile(this.#mark);
  }

  #take(): void {
    try {
      if (!existsSync(this.#mark)) writeFileSync(this.#mark, '');
    } catch {
      // No room for it: nobody would know whose it is.
      return;
    }
    this.#isOurs = true;
    this.#set(SHORT);
  }

  #giveBack(): void {
    if (!this.#isOurs) return;
    this.#isOurs = false;
    this.#set(LONG);
  }

  #set(value: string): void {
    try {
      // SAFETY: one digit that changes how long the kernel waits, not what it does.
      writeKernelFile(this.#setting, value);
    } catch {
      // Somebody made /sys read-only meanwhile: it takes as long as everywhere.
    }
  }
}

function readValue(path: string): string | undefined {
  return readKernelFile(path)?.trim();
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
