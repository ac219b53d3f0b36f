import type { Socket } from 'node:net';
import { PlatformError } from '@svc/contract';
import type { ChannelClient, ChannelProcess, ExecRequest } from '@svc/contract/channel';
import type { Logger } from 'pino';
import type { ServerChannel, Session } from 'ssh2';
import { readHalf } from '../../published-ports/read-half.ts';
import { line, runInSession, SIGNAL_NUMBERS } from './run-in-session.ts';
import { serveSftp } from './sftp-session.ts';
import { SshOutput } from './ssh-output.ts';
import { SSH_USER, type SshVisit } from './ssh-visit.ts';

const DEFAULT_SHELL = '/bin/sh';
/** The exit status of OpenSSH's client for its own failures. */
const EXIT_REFUSED = 255;
const MAX_ENV_VARIABLES = 256;
const MAX_ENV_LENGTH = 64 * 1024;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
const MAX_TERMINAL_SIDE = 65_535;

export interface SessionParts {
  readonly visit: SshVisit;
  readonly socket: Socket;
  /** Called for all traffic of the session, in both directions. */
  readonly onTraffic: (bytes: number) => void;
  readonly logger: Logger;
}

/** Serves one session of a connection: a shell, a command or SFTP, with its environment and terminal. */
export function serveSession(parts: SessionParts, session: Session, onOver: () => void): void {
  const served = new SshSession(parts);
  served.listen(session);
  served.serve(session, onOver);
}

class SshSession {
  readonly #parts: SessionParts;
  readonly #env: Record<string, string> = {};
  #envLength = 0;
  #terminal: { rows: number; cols: number } | undefined;
  #process: ChannelProcess | undefined;
  #channel: ChannelClient | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  serve(session: Session, onOver: () => void): void {
    const begin = (
      accept: () => ServerChannel | undefined,
      work: (stream: ServerChannel, output: SshOutput) => Promise<void>,
    ) => {
      // ssh2 accepts the first request of a session, and returns no stream for a second one.
      const stream = accept();
      if (stream !== undefined) void this.#run(stream, work).finally(onOver);
    };
    session.on('shell', (accept) =>
      begin(accept, (stream, output) => this.#runProcess(stream, output, [], this.#shell)),
    );
    session.on('exec', (accept, _reject, { command }) =>
      begin(accept, (stream, output) => this.#runProcess(stream, output, ['-c', command], command)),
    );
    session.on('subsystem', (accept, reject, { name }) => {
      if (name === 'sftp') begin(accept, (stream, output) => this.#transfer(stream, output));
      else reject?.();
    });
    // The session ended before its command began.
    session.on('close', () => {
      this.#channel?.close();
      onOver();
    });
  }

  /** Handles requests before and during a command. A request that wants no reply has no `accept`. */
  listen(session: Session): void {
    session.on('pty', (accept, _reject, { rows, cols, term }) => {
      this.#terminal = sizeOf(rows, cols);
      if (term !== '') this.#setEnv('TERM', term);
      accept?.();
    });
    session.on('window-change', (accept, _reject, { rows, cols }) => {
      const size = sizeOf(rows, cols);
      if (this.#terminal !== undefined) this.#terminal = size;
      this.#process?.resize(size.rows, size.cols).catch(() => undefined);
      accept?.();
    });
    session.on('env', (accept, reject, { key, val }) => {
      if (this.#setEnv(key, val)) accept?.();
      else reject?.();
    });
    session.on('signal', (accept, reject, { name }) => {
      const number = SIGNAL_NUMBERS.get(name);
      if (number === undefined || this.#process === undefined) return reject?.();
      this.#process.signal(number).catch(() => undefined);
      accept?.();
    });
  }

  get #shell(): string {
    return this.#parts.visit.access.sandbox.spec.runtime?.shell ?? DEFAULT_SHELL;
  }

  /** Each command has its own channel to the sandbox, so that a slow one does not block others. */
  async #run(
    stream: ServerChannel,
    work: (stream: ServerChannel, output: SshOutput) => Promise<void>,
  ): Promise<void> {
    const { visit, socket, onTraffic, logger } = this.#parts;
    stream.on('error', () => undefined);
    const output = new SshOutput(stream, socket, onTraffic);
    try {
      this.#channel = await visit.openChannel();
      stream.once('close', () => this.#channel?.close());
      await work(stream, output);
    } catch (error) {
      if (!PlatformError.is(error)) logger.debug({ err: error }, 'an SSH session ended early');
      const hint = PlatformError.is(error) ? error.message : 'the connection to the sandbox broke; try again';
      await output.write(line(hint), 'stderr').catch(() => undefined);
      stream.exit(EXIT_REFUSED);
    } finally {
      this.#channel?.close();
      stream.end();
    }
  }

  async #runProcess(
    stream: ServerChannel,
    output: SshOutput,
    args: readonly string[],
    shown: string,
  ): Promise<void> {
    const { visit, onTraffic } = this.#parts;
    const tty = this.#terminal !== undefined;
    visit.count(args.length === 0 ? 'shells' : 'commands');
    await visit.noteExec(shown, tty);
    const request: ExecRequest = {
      cmd: this.#shell,
      args,
      env: this.#env,
      user: SSH_USER,
      tty,
      ...this.#terminal,
    };
    await runInSession(this.#requireChannel(), request, {
      stream,
      output,
      onReceived: onTraffic,
      onStarted: (process) => {
        this.#process = process;
        // The size may have changed while the process was being started.
        if (this.#terminal !== undefined) {
          process.resize(this.#terminal.rows, this.#terminal.cols).catch(() => undefined);
        }
      },
    });
  }

  async #transfer(stream: ServerChannel, output: SshOutput): Promise<void> {
    const { visit, onTraffic } = this.#parts;
    visit.count('transfers');
    const channel = this.#requireChannel();
    await serveSftp(channel.files, await this.#findHome(channel), {
      input: counted(readHalf(stream), onTraffic),
      write: (packet) => output.write(packet),
    });
    stream.exit(0);
  }

  /** The start folder of shells. The image may set it, which only the sandbox knows. */
  async #findHome(channel: ChannelClient): Promise<string> {
    const { workdir } = this.#parts.visit.access.sandbox.spec.runtime ?? {};
    if (typeof workdir === 'string' && workdir.startsWith('/')) return workdir;
    const { stdout } = await channel
      .run(
        { cmd: this.#shell, args: ['-c', 'pwd'], user: SSH_USER },
        { maxOutputBytes: 4096, timeoutMs: 5000 },
      )
      .catch(() => ({ stdout: new Uint8Array(0) }));
    const home = Buffer.from(stdout).toString('utf8').trimEnd();
    return home.startsWith('/') ? home : '/';
  }

  #requireChannel(): ChannelClient {
    if (this.#channel === undefined) throw new Error('the channel is opened before anything runs');
    return this.#channel;
  }

  #setEnv(name: string, value: string): boolean {
    const isLegal = ENV_NAME.test(name) && !value.includes('\u0000');
    const hasRoom =
      Object.keys(this.#env).length < MAX_ENV_VARIABLES && this.#envLength + value.length < MAX_ENV_LENGTH;
    if (!isLegal || !hasRoom) return false;
    this.#env[name] = value;
    this.#envLength += value.length;
    return true;
  }
}

/** Clients without a window send 0. */
function sizeOf(rows: number, cols: number): { rows: number; cols: number } {
  const side = (value: number, fallback: number) =>
    value === 0 ? fallback : Math.min(value, MAX_TERMINAL_SIDE);
  return { rows: side(rows, 24), cols: side(cols, 80) };
}

async function* counted(
  source: AsyncIterable<Buffer>,
  onTraffic: (bytes: number) => void,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of source) {
    onTraffic(chunk.length);
    yield chunk;
  }
}
