import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Batches } from './batches.ts';

export const BATCH_DEADLINE_MS = 20_000;
/** A tmpfs. */
const MEMORY_FOLDER = '/run';
/** nft keeps its input history and scans it with every line: after 16,000 commands one takes ten times as long. */
export const MAX_EXCHANGES = 500;
/** HOME prevents the interactive mode from writing a history; LC_ALL makes error messages English, because they are parsed. */
export const NFT_ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/nonexistent', LC_ALL: 'C' };

/**
 * A long-running `nft`, which takes a fraction of a millisecond per change instead of the time to start a program. Commands must be
 * idempotent, because a child that dies in between is replaced and the command is repeated.
 */
export class Nft {
  readonly #batches = new Batches((commands) => this.#transact(commands.join('; ')));
  #child: ChildProcessWithoutNullStreams | null = null;
  #lastMark = 0;
  /** The number of exchanges with the current child. */
  #exchanges = 0;

  /** Runs one line of nft syntax; parts joined by `;` take effect together. */
  run(command: string): Promise<void> {
    return this.#batches.run(command);
  }

  /** Waits until the commands given so far have run. */
  async close(): Promise<void> {
    await this.#batches.settled();
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.stdin.end();
    await once(child, 'exit');
  }

  async #transact(line: string): Promise<Error | null> {
    try {
      return await this.#exchange(line);
    } catch {
      // The child died or hung. Commands are idempotent, so a new child retries.
      return this.#exchange(line).catch(
        (error: unknown) => new Error('nft does not answer', { cause: error }),
      );
    }
  }

  /**
   * nft prints nothing on success. An unknown word, sent behind the command, makes it print an error that quotes the word; all output to
   * stderr before that is about the command.
   */
  async #exchange(line: string): Promise<Error | null> {
    const child = (this.#child ??= this.#start());
    this.#lastMark += 1;
    const mark = `done${this.#lastMark}`;
    child.stdin.write(`${line}\n${mark}\n`);
    try {
      const complaint = await readUntil(child, mark);
      this.#exchanges += 1;
      if (this.#exchanges >= MAX_EXCHANGES) this.#letGo(child);
      return complaint === '' ? null : new Error(`nft refused a change: ${complaint.slice(0, 2000)}`);
    } catch (error) {
      this.#child = null;
      child.kill('SIGKILL');
      throw error;
    }
  }

  /** Closes a child that has finished its commands; it then exits. */
  #letGo(child: ChildProcessWithoutNullStreams): void {
    this.#child = null;
    child.stdin.end();
  }

  #start(): ChildProcessWithoutNullStreams {
    this.#exchanges = 0;
    // SAFETY: no shell, a fixed program; detached, so that a signal to the engine's terminal leaves it alone.
    const child = spawn('nft', ['-i'], { env: NFT_ENVIRONMENT, stdio: 'pipe', detached: true });
    child.stdin.on('error', () => undefined); // Seen as the child's exit.
    child.on('error', () => undefined);
    // Drops a child that ends while it is idle; otherwise the next command would be sent to it and wait.
    child.once('exit', () => {
      if (this.#child === child) this.#child = null;
    });
    child.stdout.resume();
    child.stderr.setEncoding('utf8');
    return child;
  }
}

/** Loads files of rules, and batches those that arrive together: most of the time is spent starting the program and reading the existing tables. */
export class RulesetLoads {
  readonly #batches = new Batches((texts) =>
    loadRuleset(texts.join('\n')).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    ),
  );

  load(text: string): Promise<void> {
    return this.#batches.run(text);
  }
}

/** Loads a whole file of rules in one transaction. When it fails, also by a timeout, no rule is loaded later. */
export async function loadRuleset(text: string, deadlineMs = BATCH_DEADLINE_MS): Promise<void> {
  await using rules = await unnamedFile(text);
  // SAFETY: no shell, a fixed program; the text is built by `ruleset` from checked names and addresses.
  const child = spawn('nft', ['-f', '-'], {
    env: NFT_ENVIRONMENT,
    stdio: [rules.fd, 'ignore', 'pipe'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (data: string) => (complaint += data));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (code !== 0 && child.killed) throw new Error(`nft took longer than ${deadlineMs} ms to load the rules`);
  if (code !== 0) throw new Error(sayRefusal(complaint, signal));
}

/**
 * An open file with this text and without a name, as the standard input of a program. Node's pipes are sockets, which nft 1.0.9 of
 * Ubuntu 24.04 refuses with `Not a regular file`. It lies in memory, because rules are changed on a host with a full disk too.
 */
export async function unnamedFile(text: string): Promise<FileHandle> {
  const folder = await mkdtemp(join(MEMORY_FOLDER, 'svc-input-'));
  try {
    const file = await open(join(folder, 'text'), 'wx+', 0o600);
    try {
      // At a position of its own, so that the program reads from the beginning.
      const { bytesWritten } = await file.write(text, 0);
      if (bytesWritten !== Buffer.byteLength(text)) throw new Error(`There is no room in ${MEMORY_FOLDER}`);
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The error message. Before a change nft reads every table of the host, and Debian 12's version crashes on some that a newer one wrote. */
export function sayRefusal(complaint: string, signal: NodeJS.Signals | null): string {
  if (signal === null) return `nft refused the rules: ${complaint.slice(0, 2000)}`;
  return (
    `nft was ended by ${signal} while it loaded the rules. Run \`nft list ruleset\`: when that ends the same way, another program ` +
    'of this host has a table that this nft cannot read; update nftables, or remove that table with the nft that made it'
  );
}

/**
 * The output of nft before the error about `mark`, which has three lines: the error, the mark and what points at it. Undefined while they
 * have not all arrived.
 */
export function textBefore(mark: string, text: string): string | undefined {
  const quoted = text.indexOf(`\n${mark}\n`);
  if (quoted === -1 || !text.includes('\n', quoted + mark.length + 2)) return undefined;
  return text.slice(0, text.lastIndexOf('\n', quoted - 1) + 1);
}

function readUntil(child: ChildProcessWithoutNullStreams, mark: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const finish = (settle: () => void) => {
      clearTimeout(deadline);
      child.stderr.off('data', onData);
      child.off('close', onClose);
      settle();
    };
    const onData = (data: string) => {
      text += data;
      const before = textBefore(mark, text);
      if (before !== undefined) finish(() => resolve(before));
    };
    const onClose = () => finish(() => reject(new Error('nft ended before it answered')));
    const deadline = setTimeout(
      () => finish(() => reject(new Error(`nft took longer than ${BATCH_DEADLINE_MS} ms`))),
      BATCH_DEADLINE_MS,
    );
    child.stderr.on('data', onData);
    child.once('close', onClose);
  });
}
