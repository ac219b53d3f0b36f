import { PlatformError } from '@svc/contract/errors';
import type { Message, Payload } from '@svc/contract/frames';
import { refusalReason, type ProcessOutput, type ProcessState } from '../guest/guest-messages.ts';
import { completeLength } from '../logs/log-line.ts';
import type { SandboxLog } from '../logs/sandbox-log.ts';

interface Control {
  notify(type: string, payload: Payload): void;
  request(type: string, payload: Payload, signal: AbortSignal): Promise<Message>;
}

const ATTACH_TIMEOUT_MS = 10_000;

/**
 * The command that a sandbox runs from its start. svc-init keeps its output until we acknowledge it, and we acknowledge it once it is in
 * the log: a crash of the engine neither loses nor repeats output.
 */
export class MainProcess {
  /** Unique per run, so that output of an earlier run is never taken for that of this one. */
  readonly key: string;
  readonly #log: SandboxLog;
  readonly #control: Control;
  readonly #logged = { stdout: 0, stderr: 0 };
  /** Bytes of an incomplete UTF-8 character. */
  readonly #held = { stdout: new Uint8Array(), stderr: new Uint8Array() };
  #tty = false;
  #running = false;
  /** An exit that is not reported yet: it is reported when the last byte of the output has arrived. */
  #pendingExit: { readonly state: ProcessState; readonly report: (state: ProcessState) => void } | undefined;

  constructor(key: string, log: SandboxLog, control: Control) {
    this.key = key;
    this.#log = log;
    this.#control = control;
  }

  get isRunning(): boolean {
    return this.#running;
  }

  async start(command: readonly string[], signal: AbortSignal): Promise<void> {
    const [cmd = '', ...args] = command;
    const payload = {
      key: this.key,
      cmd,
      args,
      env: [],
      cwd: null,
      user: null,
      tty: false,
      rlimits: [],
      stdin: false,
    };
    const answer = await this.#control.request('svc.process.start', payload, signal);
    if (answer.type !== 'svc.process.started') {
      throw new PlatformError(
        'start_failed',
        `the command ${cmd} could not be started: ${refusalReason(answer)}`,
        {
          details: { command: cmd, kind: answer.payload['kind'] ?? null },
        },
      );
    }
    this.#running = true;
  }

  /** Resumes reading the process's output after the connection was lost. */
  resume(state: ProcessState, onExited: (state: ProcessState) => void): void {
    this.#running = state.running;
    this.#tty = state.tty;
    this.#attach(state, onExited).catch(() => {
      // The connection broke again; the next hello retries.
    });
  }

  receive(output: ProcessOutput): void {
    const { stream, data, offset } = output;
    const held = this.#held[stream];
    // Only a misbehaving guest sends an offset that does not continue the stream; its output is logged as it comes.
    const bytes = held.length === 0 ? data : Buffer.concat([held, data]);
    const length = completeLength(bytes);
    const end = offset + data.length;
    this.#held[stream] = Buffer.from(bytes.subarray(length));
    this.#logged[stream] = end - (bytes.length - length);
    if (length > 0) this.#write(stream, bytes.subarray(0, length));
    this.#control.notify('svc.process.ack', { key: this.key, ...this.#logged });
    this.#reportPendingExit();
  }

  /** Writes the bytes of an incomplete character when the process has ended. */
  finish(): void {
    this.#running = false;
    for (const stream of ['stdout', 'stderr'] as const) {
      const held = this.#held[stream];
      if (held.length === 0) continue;
      this.#logged[stream] += held.length;
      this.#held[stream] = new Uint8Array();
      this.#write(stream, held);
    }
  }

  #write(stream: 'stdout' | 'stderr', data: Uint8Array): void {
    this.#log.output(this.key, this.#tty ? 'output' : stream, data, this.#logged[stream]);
  }

  async #attach(state: ProcessState, onExited: (state: ProcessState) => void): Promise<void> {
    const offsets = await this.#log.offsetsOf(this.key);
    Object.assign(this.#logged, offsets);
    Object.assign(this.#held, { stdout: new Uint8Array(), stderr: new Uint8Array() });
    const signal = AbortSignal.timeout(ATTACH_TIMEOUT_MS);
    await this.#control.request('svc.process.attach', { key: this.key, ...offsets }, signal);
    if (!state.running) this.#pendingExit = { state, report: onExited };
    this.#reportPendingExit();
  }

  #reportPendingExit(): void {
    if (this.#pendingExit === undefined) return;
    const { state, report } = this.#pendingExit;
    const hasAll =
      this.#logged.stdout + this.#held.stdout.length >= state.stdoutBytes &&
      this.#logged.stderr + this.#held.stderr.length >= state.stderrBytes;
    if (hasAll) report(state);
  }
}
