import { callOptionsOf, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import type { CodeRuns } from './code-runs.ts';
import { runCode, type CodeResult, type RunCodeOptions } from './run-code.ts';

type ContextInfo = RestCallOutput<'contexts.get'>;

export interface CreateContextOptions extends CallOptions {
  /** This, or `kernel`. */
  readonly language?: 'python' | 'javascript';
  /** A Jupyter kernel of the image, such as `python3` or `ir`. */
  readonly kernel?: string;
  /** A name to find it by; unique among the contexts of the sandbox. */
  readonly name?: string;
  /** The working directory of the sandbox unless given. */
  readonly cwd?: string;
  /** Over the environment of the sandbox. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Interpreters with a state of their own. They end with the run of the sandbox. */
export class CodeContexts {
  readonly #client: Client;
  readonly #sandboxId: string;
  readonly #runs: CodeRuns;

  constructor(client: Client, sandboxId: string, runs: CodeRuns) {
    this.#client = client;
    this.#sandboxId = sandboxId;
    this.#runs = runs;
  }

  /** Resolves when it can run code. @throws SvcError `name_already_exists`, `quota_exceeded`, `exec_failed` */
  async create(options: CreateContextOptions): Promise<CodeContext> {
    const call = callOptionsOf(options, { language: true, kernel: true, name: true, cwd: true, env: true });
    const { language, kernel, name, cwd, env } = options;
    const body = {
      ...(language === undefined ? {} : { language }),
      ...(kernel === undefined ? {} : { kernel }),
      ...(name === undefined ? {} : { name }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env: { ...env } }),
    };
    const info = await this.#client.call('contexts.create', { params: this.#params, body }, call);
    return this.#make(info);
  }

  /** By id or name. @throws SvcError `context_not_found`, or `context_lost` for an id whose context has ended */
  async get(idOrName: string, options: CallOptions = {}): Promise<CodeContext> {
    const params = { ...this.#params, context_id: idOrName };
    const info = await this.#client.call('contexts.get', { params }, options);
    return this.#make(info);
  }

  /** Oldest first; the default ones are not among them. */
  async list(options: CallOptions = {}): Promise<readonly CodeContext[]> {
    const all = await this.#client.call('contexts.list', { params: this.#params }, options);
    return all.map((info) => this.#make(info));
  }

  #make(info: ContextInfo): CodeContext {
    return new CodeContext(this.#client, this.#sandboxId, this.#runs, info);
  }

  get #params(): { readonly sandbox_id: string } {
    return { sandbox_id: this.#sandboxId };
  }
}

/** One interpreter. Its state is kept between runs; concurrent runs queue. */
export class CodeContext {
  readonly #client: Client;
  readonly #sandboxId: string;
  readonly #runs: CodeRuns;
  #info: ContextInfo;

  /** Made by `contexts`. */
  constructor(client: Client, sandboxId: string, runs: CodeRuns, info: ContextInfo) {
    this.#client = client;
    this.#sandboxId = sandboxId;
    this.#runs = runs;
    this.#info = info;
  }

  get id(): string {
    return this.#info.id;
  }

  get name(): string | null {
    return this.#info.name;
  }

  /** The record of the server as of the last call. */
  get info(): ContextInfo {
    return this.#info;
  }

  async runCode(
    code: string,
    options: Omit<RunCodeOptions, 'language' | 'kernel' | 'context'> = {},
  ): Promise<CodeResult> {
    return await runCode(this.#runs, code, { ...options, context: this });
  }

  /** Ends what runs, as Ctrl-C does; the state is kept. */
  async interrupt(options: CallOptions = {}): Promise<void> {
    this.#info = await this.#client.call('contexts.interrupt', this.#self, options);
  }

  /** Restarts the interpreter in the same folder and environment, without its state. */
  async restart(options: CallOptions = {}): Promise<void> {
    this.#info = await this.#client.call('contexts.restart', this.#self, options);
  }

  async remove(options: CallOptions = {}): Promise<void> {
    await this.#client.call('contexts.remove', this.#self, options);
  }

  get #self(): { readonly params: { readonly sandbox_id: string; readonly context_id: string } } {
    return { params: { sandbox_id: this.#sandboxId, context_id: this.id } };
  }
}
