import type { FetchProgress, Sandbox as SandboxRecord, SandboxStatus, Snapshot } from '@svc/contract/rest';
import { callOptionsOf, type CallOptions, withBudgetEach } from '../client/call-budget.ts';
import { Client, type ClientCallOptions } from '../client/client.ts';
import { eachItem } from '../client/pages.ts';
import { requireKnownOptions, type OptionNames } from '../client/known-options.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import { SvcError } from '../svc-error.ts';
import { CodeContexts } from './code-contexts.ts';
import { Commands, type RunOptions } from './commands.ts';
import { CREATE_OPTIONS, toCreateRequest, type CreateOptions } from './create-options.ts';
import type { ExecResult } from './exec-result.ts';
import { Files } from './files.ts';
import { Git } from './git.ts';
import { GitProgram } from './git-program.ts';
import { CodeRuns } from './code-runs.ts';
import { SharedChannel } from './shared-channel.ts';
import { readLogs, type LogEntry, type LogOptions } from './logs.ts';
import { Ports } from './ports.ts';
import { SandboxNetwork } from './sandbox-network.ts';
import { runCode, type CodeResult, type RunCodeOptions } from './run-code.ts';
import { untilRunning, untilStarted, untilStopped } from './settle.ts';
import { makeSnapshot, type SnapshotOptions } from './snapshot.ts';
import { Terminals } from './terminals.ts';
import { followEvents } from '../client/follow-events.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DEFAULT_SHELL = '/bin/sh';

export interface CreateSandboxOptions extends CreateOptions, ClientCallOptions {
  /** False: it is created and not started. */
  readonly start?: boolean;
  /**
   * For calls that may be repeated, after a crash say: the same options under the same key give one sandbox, and the second call
   * waits for the start that the first began. A random one unless given.
   */
  readonly idempotencyKey?: string;
}

const OPTIONS: OptionNames<Omit<CreateSandboxOptions, keyof ClientCallOptions>> = {
  ...CREATE_OPTIONS,
  start: true,
  idempotencyKey: true,
};

export interface ListOptions extends ClientCallOptions {
  /** Only sandboxes with all of these labels. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * A sandbox of the server. The object holds a connection for commands and files and one for code, each opened when it is needed.
 * `await using` stops the sandbox at the end of the block, or removes it when it is ephemeral.
 */
export class Sandbox implements AsyncDisposable {
  readonly client: Client;
  /** Processes. */
  readonly commands: Commands;
  readonly files: Files;
  /** Repositories. */
  readonly git: Git;
  /** Terminals. */
  readonly pty: Terminals;
  readonly network: SandboxNetwork;
  readonly ports: Ports;
  /** Interpreters with a state of their own, for `runCode`. */
  readonly contexts: CodeContexts;
  readonly #channel: SharedChannel;
  readonly #codeRuns: CodeRuns;
  #info: SandboxRecord;

  private constructor(client: Client, info: SandboxRecord) {
    this.client = client;
    this.#info = info;
    this.#channel = new SharedChannel(client, info.id);
    this.commands = new Commands(client, info.id, this.#channel);
    this.files = new Files(client, info.id, this.#channel);
    this.git = new Git(new GitProgram(this.commands, () => this.#info.spec?.image));
    this.network = new SandboxNetwork(client, info.id);
    this.ports = new Ports(client, info.id, this.#channel);
    this.#codeRuns = new CodeRuns(client, info.id);
    this.contexts = new CodeContexts(client, info.id, this.#codeRuns);
    this.pty = new Terminals(this.commands, () => this.#shell);
  }

  /**
   * Makes a sandbox and waits until it runs.
   * @throws SvcError `start_failed` with `details.sandbox_id` when it was made but does not run; `timeout` while it starts, with
   *   `details.sandbox_id` once it is made
   */
  static async create(options: CreateSandboxOptions): Promise<Sandbox> {
    const given = optionsOf(options);
    const call = callOptionsOf(given, OPTIONS);
    const { client = Client.ofEnvironment, idempotencyKey } = given;
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    const body = toCreateRequest(given);
    if (given.start === false) {
      return new Sandbox(client, await client.call('sandboxes.create', { body }, { ...call, ...key }));
    }
    const starting = untilStarted(client, call, ({ query, call: held }) =>
      client.call('sandboxes.create', { body, query: { start: true, ...query } }, { ...held, ...key }),
    );
    // After the create was sent: a sandbox that starts will most likely be connected to.
    setTimeout(() => client.dialAhead(), 0);
    return new Sandbox(client, await starting);
  }

  /** One that exists, by its name or its id; it is not started. @throws SvcError `sandbox_not_found` */
  static async connect(nameOrId: string, options: ClientCallOptions = {}): Promise<Sandbox> {
    const client = options.client ?? Client.ofEnvironment;
    return new Sandbox(client, await find(client, nameOrId, options));
  }

  /** The sandbox of this name, started when it does not run, or else a new one. The options do not change an existing one. */
  static async getOrCreate(options: CreateSandboxOptions & { readonly name: string }): Promise<Sandbox> {
    const given = optionsOf(options);
    const call = callOptionsOf(given, OPTIONS);
    const { client = Client.ofEnvironment } = given;
    const found = await Sandbox.#connectIfThere(given.name, { ...call, client });
    if (found === undefined) {
      try {
        return await Sandbox.create(given);
      } catch (error) {
        // Another client has created it meanwhile.
        if (!SvcError.is(error, 'name_already_exists')) throw error;
      }
    }
    const sandbox = found ?? (await Sandbox.connect(given.name, { ...call, client }));
    if (given.start !== false && sandbox.status !== 'running') await sandbox.start(call);
    return sandbox;
  }

  static async #connectIfThere(name: string, options: ClientCallOptions): Promise<Sandbox | undefined> {
    try {
      return await Sandbox.connect(name, options);
    } catch (error) {
      if (SvcError.is(error, 'sandbox_not_found')) return undefined;
      throw error;
    }
  }

  /** All sandboxes of the organization, newest first. */
  static async *list(options: ListOptions = {}): AsyncGenerator<Sandbox, void> {
    const call = callOptionsOf(options, { labels: true });
    const client = options.client ?? Client.ofEnvironment;
    const labels = options.labels === undefined ? {} : { labels: JSON.stringify(options.labels) };
    const records = eachItem((cursor) =>
      client.call('sandboxes.list', { query: { limit: 100, ...labels, ...cursor } }, call),
    );
    for await (const record of records) yield new Sandbox(client, record);
  }

  get id(): string {
    return this.#info.id;
  }

  get name(): string {
    return this.#info.name;
  }

  /** Its status as of the last call: see `refresh`. */
  get status(): SandboxStatus {
    return this.#info.status;
  }

  /** The record of the server as of the last call. */
  get info(): SandboxRecord {
    return this.#info;
  }

  /** Fetches the record from the server. */
  async refresh(options: CallOptions = {}): Promise<SandboxRecord> {
    this.#info = await this.client.call('sandboxes.get', this.#self, options);
    return this.#info;
  }

  /** Starts it, unless it runs already, and waits until it runs. @throws SvcError `start_failed`, `timeout` */
  async start(options: CallOptions = {}): Promise<void> {
    this.#info = await untilStarted(this.client, options, async ({ query, call }) => {
      this.#info = await this.client.call('sandboxes.start', { ...this.#self, query }, call);
      return this.#info;
    });
  }

  /** Waits for a start that this or another client has requested. @throws SvcError `start_failed`, `timeout` */
  async waitForRunning(options: CallOptions = {}): Promise<void> {
    this.#info = await untilRunning(this.client, this.id, options);
  }

  /** The progress of a start that was requested already: how much of its image is there. Ends with the start. */
  startProgress(options: CallOptions = {}): AsyncGenerator<FetchProgress, void> {
    return followStart(this.client, this.id, options);
  }

  /** Stops it and waits until it has stopped. Its disk is kept; an ephemeral one is removed. */
  async stop(options: CallOptions = {}): Promise<void> {
    this.#leave();
    this.#info = await this.client.call('sandboxes.stop', this.#self, options);
    const stopped = await untilStopped(this.client, this.id, options);
    this.#info = stopped ?? { ...this.#info, status: 'stopped' };
  }

  async restart(options: CallOptions = {}): Promise<void> {
    await this.stop(options);
    await this.start(options);
  }

  /** Stops it and destroys all that it has; volumes and snapshots stay. */
  async remove(options: CallOptions = {}): Promise<void> {
    this.#leave();
    await this.client.call('sandboxes.remove', this.#self, options);
  }

  async rename(
    names: { readonly name?: string; readonly slug?: string },
    options: CallOptions = {},
  ): Promise<void> {
    this.#info = await this.client.call('sandboxes.update', { ...this.#self, body: names }, options);
  }

  /**
   * Changes how long it may run, counted from its start, and be idle; null: no limit. Applies at once, and to its next runs.
   */
  async setLifecycle(
    change: { readonly maxDurationSecs?: number | null; readonly idleTimeoutSecs?: number | null },
    options: CallOptions = {},
  ): Promise<void> {
    requireKnownOptions(change, { maxDurationSecs: true, idleTimeoutSecs: true });
    const { maxDurationSecs, idleTimeoutSecs } = change;
    const body = {
      ...(maxDurationSecs === undefined ? {} : { max_duration_secs: maxDurationSecs }),
      ...(idleTimeoutSecs === undefined ? {} : { idle_timeout_secs: idleTimeoutSecs }),
    };
    this.#info = await this.client.call('lifecycle.update', { ...this.#self, body }, options);
  }

  /** Sets its end to this many milliseconds from now, earlier or later than before; `info.ends_at` has the time. */
  async setTimeout(timeoutMs: number, options: CallOptions = {}): Promise<void> {
    const body = { ends_in_secs: Math.max(1, Math.ceil(timeoutMs / 1000)) };
    this.#info = await this.client.call('lifecycle.update', { ...this.#self, body }, options);
  }

  /** Counts as use: its idle time begins anew. @throws SvcError `sandbox_not_running` */
  async keepAlive(options: CallOptions = {}): Promise<void> {
    this.#info = await this.client.call('lifecycle.keepAlive', this.#self, options);
  }

  /** Chooses how it continues after an outage of its host. @throws SvcError `invalid_state_transition` without an outage */
  async recover(action: 'wait' | 'restart' | 'stop', options: CallOptions = {}): Promise<void> {
    this.#info = await this.client.call('sandboxes.recover', { ...this.#self, body: { action } }, options);
  }

  /** Runs a program to its end; short for `commands.run`. No shell is involved. */
  async exec(program: string, args: readonly string[] = [], options: RunOptions = {}): Promise<ExecResult> {
    return await this.commands.run(program, args, options);
  }

  /** Runs a script in the shell of the sandbox. */
  async shell(script: string, options: RunOptions = {}): Promise<ExecResult> {
    return await this.commands.run(this.#shell, ['-c', script], options);
  }

  /**
   * Runs code in an interpreter that keeps its state between calls: in the default context of `language`, or in `context`.
   */
  async runCode(code: string, options: RunCodeOptions = {}): Promise<CodeResult> {
    return await runCode(this.#codeRuns, code, options);
  }

  /** An address of a port that opens as it is, in a browser and in `fetch`; short for `ports.url`. */
  async url(port: number, options: CallOptions & { readonly expiresInSecs?: number } = {}): Promise<string> {
    return await this.ports.url(port, options);
  }

  /** Waits until a program listens on the port; short for `ports.waitFor`. */
  async waitForPort(port: number, options: CallOptions = {}): Promise<void> {
    await this.ports.waitFor(port, options);
  }

  /** What its processes have written, oldest first. */
  logs(options: LogOptions = {}): AsyncGenerator<LogEntry, void> {
    return readLogs(this.client, this.id, options);
  }

  /** What it used over time: the last hour in steps of 30 s unless told otherwise. */
  async metrics(
    options: CallOptions & { readonly rangeSeconds?: number; readonly stepSeconds?: number } = {},
  ): Promise<RestCallOutput<'sandboxes.metrics'>> {
    const call = callOptionsOf(options, { rangeSeconds: true, stepSeconds: true });
    const { rangeSeconds, stepSeconds } = options;
    const query = {
      ...(rangeSeconds === undefined ? {} : { range_secs: rangeSeconds }),
      ...(stepSeconds === undefined ? {} : { step_secs: stepSeconds }),
    };
    return await this.client.call('sandboxes.metrics', { ...this.#self, query }, call);
  }

  /**
   * Makes a snapshot of its disk, while it runs or is stopped, with all writes so far. It keeps running. Create sandboxes from it
   * with `Sandbox.create({ snapshotId })`.
   */
  async snapshot(name: string, options: SnapshotOptions = {}): Promise<Snapshot> {
    return await makeSnapshot(this.client, this.id, name, options);
  }

  /** Closes its connections and the processes that run over them; the sandbox keeps running. */
  close(): void {
    this.#channel.close();
    this.#codeRuns.close();
  }

  /** Closes the connections before it ends; current runs of code get the end from the server. */
  #leave(): void {
    this.#channel.close();
    this.#codeRuns.closeWhenIdle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await (this.#info.ephemeral ? this.remove() : this.stop());
    } catch (error) {
      // Another client has stopped or removed it already.
      const isOver =
        SvcError.is(error, 'sandbox_not_found') || SvcError.is(error, 'invalid_state_transition');
      if (!isOver) throw error;
    }
  }

  get #self(): { readonly params: { readonly sandbox_id: string } } {
    return { params: { sandbox_id: this.id } };
  }

  get #shell(): string {
    const runtime: { readonly shell?: string | null } = this.#info.spec?.runtime ?? {};
    return runtime.shell ?? DEFAULT_SHELL;
  }
}

/** Programs without types may leave the options out. */
function optionsOf<Options>(options: Options | undefined): Options {
  if (options !== undefined) return options;
  throw new SvcError('invalid_request', "Say what to make it from: Sandbox.create({ image: 'python' })", {
    details: { field: 'image' },
  });
}

/** A text with the form of an id may still be a name. */
async function find(client: Client, nameOrId: string, call: CallOptions): Promise<SandboxRecord> {
  if (UUID.test(nameOrId)) {
    try {
      return await client.call('sandboxes.get', { params: { sandbox_id: nameOrId } }, call);
    } catch (error) {
      if (!SvcError.is(error, 'sandbox_not_found')) throw error;
    }
  }
  return await client.call('sandboxes.getByName', { params: { name: nameOrId } }, call);
}

/** The progress of a start until it is over; empty when no start is under way. */
async function* followStart(
  client: Client,
  sandboxId: string,
  options: CallOptions,
): AsyncGenerator<FetchProgress, void> {
  const input = { params: { sandbox_id: sandboxId } };
  const events = withBudgetEach(options, (budget) =>
    followEvents(budget, () => client.call('progress.follow', input, { signal: budget.signal })),
  );
  for await (const { event, data } of events) {
    // The table of operations gives the events of this stream this type.
    if (event === 'progress') yield data as FetchProgress;
  }
}
