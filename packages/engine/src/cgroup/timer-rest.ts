import { readdirSync, writeFileSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';

/** What the kernel gives every program. */
const PRECISE_NS = 50_000;
/** Fifty wake-ups a second at the most. */
const RESTING_NS = 20_000_000;

/**
 * How precisely the timers of a sandbox's host processes go off. gVisor's kernel looks at something every millisecond, also with nothing to
 * do: some 25 ms of CPU a second, for each sandbox. While it rests, the Linux kernel may put these looks off; what arrives wakes it at
 * once all the same. https://man7.org/linux/man-pages/man5/proc_pid_timerslack_ns.5.html
 */
export class TimerRest {
  readonly #pids: () => readonly number[];
  /** Undefined: as an engine before us has left it. */
  #isResting: boolean | undefined;

  /** `pids`: the host's, of one sandbox. */
  constructor(pids: () => readonly number[]) {
    this.#pids = pids;
  }

  rest(): void {
    if (this.#isResting === true) return;
    this.#isResting = true;
    this.#set(RESTING_NS);
  }

  wake(): void {
    if (this.#isResting === false) return;
    this.#isResting = false;
    const done = this.#set(PRECISE_NS);
    // A thread has the precision of the one that made it, which may have been set since.
    this.#set(PRECISE_NS, done);
  }

  /** @returns the threads that are so now */
  #set(slackNs: number, done: ReadonlySet<string> = new Set()): ReadonlySet<string> {
    // SAFETY: read a moment ago from the cgroup of one sandbox; another process of that id would lose some precision, or get it back.
    const threads = new Set(this.#pids().flatMap(threadsOf)).difference(done);
    for (const thread of threads) writeSlack(thread, slackNs);
    return threads;
  }
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return [];
    throw error;
  }
}

function writeSlack(thread: string, slackNs: number): void {
  try {
    writeFileSync(`/proc/${thread}/timerslack_ns`, String(slackNs));
  } catch (error) {
    // It has ended, or this engine may not (in a container without CAP_SYS_NICE): then nothing is saved.
    if (!isErrno(error, 'ENOENT', 'ESRCH', 'EPERM', 'EACCES')) throw error;
  }
}
