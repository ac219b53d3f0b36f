import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** The warden waits for the end of its input; input that ends without this word means that the test died or forgot to clean up. */
const DISMISSED = 'dismissed';
const SCRIPT = `read -r word; [ "$word" = ${DISMISSED} ] || exec "$@"`;

/**
 * A program that runs when this process is gone, however it ended, unless the warden was dismissed before. So that what a test
 * started ends with it: a set-up that failed half-way, a test that was killed.
 */
export class Warden {
  readonly #child: ChildProcess;

  constructor(command: readonly string[]) {
    // SAFETY: the script is constant, the command words of ours. In a group of its own: it outlives this process.
    this.#child = spawn('sh', ['-c', SCRIPT, 'sh', ...command], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#child.stdin?.on('error', () => undefined);
    this.#child.unref();
    // A pipe of a child is a socket, which the declarations do not say.
    (this.#child.stdin as unknown as { unref(): void }).unref();
  }

  async dismiss(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.ref();
    this.#child.stdin?.end(`${DISMISSED}\n`);
    await ended;
  }
}
