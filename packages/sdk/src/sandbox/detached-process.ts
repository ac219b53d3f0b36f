import type { Process } from '@svc/contract/rest';
import type { Content } from '../client/byte-content.ts';
import { callOptionsOf, withBudget, withBudgetEach, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { OptionNames } from '../client/known-options.ts';
import { followEvents } from '../client/follow-events.ts';
import { eachItem } from '../client/pages.ts';
import type { StreamEvent } from '../client/server-events.ts';
import { COMMAND_OPTIONS, givenCommandOptions, type CommandOptions } from './command-options.ts';
import { signalNumber, type Signal } from './signals.ts';

const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 1000;

export interface DetachedOptions extends CommandOptions, CallOptions {
  /** A name to find it by; unique among the running processes of the sandbox. */
  readonly name?: string;
  /** Whether it may be written to. */
  readonly hasStdin?: boolean;
  /** In a terminal of this size. */
  readonly terminal?: { readonly cols: number; readonly rows: number };
  /** It is killed after this long, whether a client is connected or not. */
  readonly maxRunSeconds?: number;
  /** How much unread output of each stream is kept; 1 MiB unless given. Older output is dropped. */
  readonly outputBufferBytes?: number;
}

const DETACHED_OPTIONS: OptionNames<Omit<DetachedOptions, keyof CallOptions>> = {
  ...COMMAND_OPTIONS,
  name: true,
  hasStdin: true,
  terminal: true,
  maxRunSeconds: true,
  outputBufferBytes: true,
};

/** A piece of output, or a gap where output was dropped because it was not read in time. Offsets are in bytes. */
export type DetachedOutput =
  | {
      readonly kind: 'data';
      readonly stream: 'stdout' | 'stderr';
      readonly offset: number;
      readonly data: Uint8Array;
    }
  | {
      readonly kind: 'dropped';
      readonly stream: 'stdout' | 'stderr';
      readonly from: number;
      readonly to: number;
    };

/** A process that outlives its client: it exits, or ends by a signal or with its sandbox. */
export class DetachedProcess {
  readonly #client: Client;
  #info: Process;

  private constructor(client: Client, info: Process) {
    this.#client = client;
    this.#info = info;
  }

  static async start(
    client: Client,
    sandboxId: string,
    request: {
      readonly program: string;
      readonly args: readonly string[];
      readonly options: DetachedOptions;
    },
  ): Promise<DetachedProcess> {
    const { program, args, options } = request;
    const call = callOptionsOf(options, DETACHED_OPTIONS);
    const { name, terminal, hasStdin = false, maxRunSeconds, outputBufferBytes } = options;
    const body = {
      cmd: program,
      args: [...args],
      stdin: hasStdin,
      ...givenCommandOptions(options),
      ...(name === undefined ? {} : { name }),
      ...(terminal === undefined ? {} : { tty: true, ...terminal }),
      ...(maxRunSeconds === undefined ? {} : { timeout_secs: maxRunSeconds }),
      ...(outputBufferBytes === undefined ? {} : { output_buffer_bytes: outputBufferBytes }),
    };
    const input = { params: { sandbox_id: sandboxId }, body };
    return new DetachedProcess(client, await client.call('processes.start', input, call));
  }

  static async connect(
    client: Client,
    sandboxId: string,
    idOrName: string,
    options: CallOptions,
  ): Promise<DetachedProcess> {
    const input = { params: { sandbox_id: sandboxId, process_id: idOrName } };
    return new DetachedProcess(client, await client.call('processes.get', input, options));
  }

  static async *list(
    client: Client,
    sandboxId: string,
    options: CallOptions & { readonly status?: 'running' | 'exited' },
  ): AsyncGenerator<DetachedProcess, void> {
    const call = callOptionsOf(options, { status: true });
    const query = { limit: 100, ...(options.status === undefined ? {} : { status: options.status }) };
    const params = { sandbox_id: sandboxId };
    const all = eachItem((cursor) =>
      client.call('processes.list', { params, query: { ...query, ...cursor } }, call),
    );
    for await (const info of all) yield new DetachedProcess(client, info);
  }

  get id(): string {
    return this.#info.id;
  }

  get name(): string | null {
    return this.#info.name;
  }

  /** The record of the server as of the last call. */
  get info(): Process {
    return this.#info;
  }

  async refresh(options: CallOptions = {}): Promise<Process> {
    this.#info = await this.#client.call('processes.get', this.#self, options);
    return this.#info;
  }

  /**
   * Its output from the beginning, or from the offsets that were read up to, until it ends. Survives lost connections, and
   * restarts of the server and its engine, without losing or repeating a byte.
   */
  async *output(
    options: CallOptions & { readonly stdoutOffset?: number; readonly stderrOffset?: number } = {},
  ): AsyncGenerator<DetachedOutput, void> {
    const call = callOptionsOf(options, { stdoutOffset: true, stderrOffset: true });
    const { stdoutOffset = 0, stderrOffset = 0 } = options;
    const query = { offset: `${stdoutOffset}-${stderrOffset}`, follow: true };
    const events = withBudgetEach(call, (budget) =>
      followEvents(budget, (lastId) => {
        const headers = lastId === undefined ? {} : { 'last-event-id': lastId };
        const input = { ...this.#self, query, headers };
        return this.#client.call('processes.output', input, { signal: budget.signal });
      }),
    );
    for await (const event of events) {
      if (event.event === 'end') this.#info = event.data as Process;
      else if (event.event === 'output' || event.event === 'dropped') yield toOutput(event);
    }
  }

  /** Waits until it has ended; its output need not be read. */
  async wait(options: CallOptions = {}): Promise<NonNullable<Process['exit']>> {
    return await withBudget(options, async (budget) => {
      for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(LONGEST_POLL_MS, pauseMs * 1.5)) {
        const { exit } = await this.refresh({ signal: budget.signal });
        if (exit !== null) return exit;
        await budget.pause(pauseMs);
      }
    });
  }

  /** Resolves when the process has taken it. */
  async write(data: Content, options: CallOptions = {}): Promise<void> {
    await this.#client.call('processes.writeStdin', { ...this.#self, body: data }, options);
  }

  async closeStdin(options: CallOptions = {}): Promise<void> {
    const input = { ...this.#self, query: { close: true }, body: '' };
    await this.#client.call('processes.writeStdin', input, options);
  }

  /** To the process and all that it started in its group. */
  async signal(signal: Signal, options: CallOptions = {}): Promise<void> {
    const input = { ...this.#self, body: { signal: signalNumber(signal) } };
    this.#info = await this.#client.call('processes.signal', input, options);
  }

  async kill(options: CallOptions = {}): Promise<void> {
    await this.signal('SIGKILL', options);
  }

  async resize(
    size: { readonly cols: number; readonly rows: number },
    options: CallOptions = {},
  ): Promise<void> {
    await this.#client.call('processes.resize', { ...this.#self, body: { ...size } }, options);
  }

  /** Kills it if it runs, and forgets it with its output. */
  async remove(options: CallOptions = {}): Promise<void> {
    await this.#client.call('processes.remove', this.#self, options);
  }

  get #self(): { readonly params: { readonly sandbox_id: string; readonly process_id: string } } {
    return { params: { sandbox_id: this.#info.sandbox_id, process_id: this.id } };
  }
}

/** Bytes come in base64, because events are text. */
function toOutput({ event, data }: StreamEvent): DetachedOutput {
  if (event === 'dropped') {
    const { stream, from, to } = data as Omit<DetachedOutput & { readonly kind: 'dropped' }, 'kind'>;
    return { kind: 'dropped', stream, from, to };
  }
  const {
    stream,
    offset,
    data: text,
  } = data as {
    readonly stream: 'stdout' | 'stderr';
    readonly offset: number;
    readonly data: string;
  };
  const bytes = Uint8Array.from(atob(text), (character) => character.codePointAt(0) ?? 0);
  return { kind: 'data', stream, offset, data: bytes };
}
