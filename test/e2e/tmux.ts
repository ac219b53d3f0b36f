import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';

const run = promisify(execFile);

/** A real terminal of 80 × 24 with a shell in it, typed into and read as a person would. */
export class Tmux implements AsyncDisposable {
  readonly #socket: string;

  private constructor(socket: string) {
    this.#socket = socket;
  }

  static async open(cwd: string, env: Readonly<Record<string, string>>): Promise<Tmux> {
    const tmux = new Tmux(`svc-cli-${crypto.randomUUID().slice(0, 8)}`);
    const shown = { PS1: 'host> ', TERM: 'tmux-256color', LANG: 'C.UTF-8' };
    const words = ['new-session', '-d', '-x', '80', '-y', '24', '-c', cwd, 'bash', '--norc'];
    // In the environment, not among the words: other users must not see the key.
    await run('tmux', tmux.#place(words), { env: { ...env, ...shown } });
    try {
      await tmux.until(/host>$/);
      return tmux;
    } catch (error) {
      await tmux[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Then Enter. */
  async line(text: string): Promise<void> {
    await this.#do('send-keys', '-l', text);
    await this.key('Enter');
  }

  async type(text: string): Promise<void> {
    await this.#do('send-keys', '-l', text);
  }

  /** By tmux's name of it: `C-c`, `Escape`. */
  async key(name: string): Promise<void> {
    await this.#do('send-keys', name);
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.#do('resize-window', '-x', String(cols), '-y', String(rows));
  }

  /** From here on, all that is drawn on it is written to this file too: what is wiped away soon may be missed on the screen. */
  async record(path: string): Promise<void> {
    await this.#do('pipe-pane', '-o', `exec cat > '${path}'`);
  }

  /** What can be read on it, without the empty lines at its end. */
  async screen(): Promise<string> {
    return (await this.#do('capture-pane', '-p')).replace(/\n+$/, '');
  }

  async until(expected: RegExp): Promise<string> {
    let screen = '';
    const isThere = async () => expected.test((screen = await this.screen()));
    await waitUntil(isThere, { what: `the screen shows ${String(expected)}` }).catch((error: unknown) => {
      throw new Error(`${String(error)}; it shows:\n${screen}`, { cause: error });
    });
    return screen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // SAFETY: a server of its own, by the name of its socket; it has no other sessions.
    await this.#do('kill-server').catch(() => undefined);
  }

  async #do(...words: string[]): Promise<string> {
    return (await run('tmux', this.#place(words))).stdout;
  }

  #place(words: readonly string[]): string[] {
    return ['-L', this.#socket, '-f', '/dev/null', ...words];
  }
}
