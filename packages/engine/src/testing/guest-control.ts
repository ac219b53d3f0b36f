import type { Rlimit } from '@svc/contract';
import { GuestLink } from '../guest/guest-link.ts';
import type { RuntimeSpec } from '../runtime/runtime.ts';

export interface Outcome {
  readonly code: number | null;
  readonly output: string;
  readonly reason: string | null;
}

/** The engine's side of one sandbox, reduced for tests of the runtime: waits for svc-init and runs commands through it. */
export class GuestControl {
  readonly #connected = Promise.withResolvers<void>();
  readonly #outputs = new Map<string, string>();
  readonly #exits = new Map<string, (outcome: Outcome) => void>();
  #link: GuestLink | undefined;
  #count = 0;

  /** `wasOutOfMemory` is called when a process dies of SIGKILL. */
  static async listen(spec: RuntimeSpec, wasOutOfMemory: () => boolean = () => false): Promise<GuestControl> {
    const control = new GuestControl();
    control.#link = await GuestLink.listen(spec.guestFolder, spec.initToken, {
      asked: () => undefined,
      connected: () => control.#connected.resolve(),
      disconnected: () => undefined,
      status: () => undefined,
      output: ({ key, data }) => {
        const before = control.#outputs.get(key) ?? '';
        control.#outputs.set(key, before + Buffer.from(data).toString('latin1'));
      },
      exited: ({ key, code, reason }) => {
        control.#exits.get(key)?.({ code, reason, output: control.#outputs.get(key) ?? '' });
      },
      wasOutOfMemory: async () => wasOutOfMemory(),
      wereForksRefused: () => false,
    });
    return control;
  }

  /** Resolves when PID 1 has dialled and sent the right token. */
  async connected(signal: AbortSignal = AbortSignal.timeout(60_000)): Promise<void> {
    await Promise.race([this.#connected.promise, aborted(signal)]);
  }

  get isConnected(): boolean {
    return this.#link?.isConnected ?? false;
  }

  /** Runs a shell script; returns stdout and stderr combined. */
  async run(script: string, user: string | null = null): Promise<Outcome> {
    const signal = AbortSignal.timeout(60_000);
    this.#count += 1;
    const key = `test-${this.#count}`;
    const exited = Promise.withResolvers<Outcome>();
    this.#exits.set(key, exited.resolve);
    const answer = await this.#link?.request('svc.process.start', command(key, script, user), signal);
    if (answer?.type !== 'svc.process.started') throw new Error(`not started: ${JSON.stringify(answer)}`);
    return Promise.race([exited.promise, aborted(signal)]);
  }

  /** Applies to every process that starts from now on. */
  async limit(rlimits: readonly Rlimit[]): Promise<void> {
    const config = { env: [], files: [], rlimits: [...rlimits] };
    await this.#link?.request('svc.configure', config, AbortSignal.timeout(60_000));
  }

  shutDown(): void {
    this.#link?.notify('svc.shutdown', { grace_ms: 0 });
  }

  async close(): Promise<void> {
    await this.#link?.close();
  }
}

function command(key: string, script: string, user: string | null): Record<string, unknown> {
  return {
    key,
    cmd: '/bin/sh',
    args: ['-c', `exec 2>&1; ${script}`],
    env: ['PATH=/bin'],
    cwd: '/',
    ...(user === null ? {} : { user }),
    tty: false,
    rlimits: [],
    stdin: false,
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  if (signal.aborted) reject(signal.reason as Error);
  signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  return promise;
}
