import {
  checkRestInput,
  type RestInput,
  type RestOperationName,
  type RestOperations,
  type RestOutput,
} from '@svc/contract/rest';
import {
  ChannelError,
  PlatformError,
  type ChannelFiles,
  type OperationInput,
  type OperationOutput,
} from '@svc/contract';
import { authorityOfCaller } from '../../../access/authority-of-caller.ts';
import type { Caller } from '../../../access/caller.ts';
import type { Dispatch } from '../../../dispatch/dispatch.ts';
import type { RestDispatch } from '../../../dispatch/rest-dispatch.ts';
import type { SandboxFiles } from '../../../handlers/files/sandbox-files.ts';
import { notFound } from '../../../handlers/sandboxes/running-sandbox.ts';
import type { ChannelPool } from '../../../orchestrator/channel-pool.ts';
import type { Progress } from '../../../sandboxes/start-progress.ts';
import type { Database } from '../../../store/database.ts';
import { findOrganization } from '../../../store/organizations.ts';
import { findSandbox, type SandboxRecord } from '../../../store/sandboxes.ts';
import type { KeptOutput } from './kept-output.ts';

const LOOPBACK = '127.0.0.1';
/** Timeout of a request that a sandbox answers at once. */
const CONNECT_MS = 2000;

/** Access of tools to the control plane and to files of sandboxes, by the same way as other surfaces. */
export interface Workbench {
  readonly database: Database;
  readonly rest: RestDispatch;
  readonly files: SandboxFiles;
  readonly dispatch: Dispatch;
  readonly channels: ChannelPool;
  readonly keptOutput: KeptOutput;
}

/** The caller of a tool, with progress and cancellation. */
export interface ToolCaller {
  readonly caller: Caller;
  readonly requestId: string;
  readonly sourceAddress: string | null;
  readonly userAgent: string;
  /** Aborts when the caller cancels or disconnects. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

type Parts<Name extends RestOperationName> = Partial<RestInput<RestOperations[Name]>>;

/** One call of a tool, in a namespace that its caller may access. */
export class ToolContext {
  readonly namespace: string;
  readonly #bench: Workbench;
  readonly #call: ToolCaller;

  constructor(bench: Workbench, call: ToolCaller, namespace: string) {
    this.#bench = bench;
    this.#call = call;
    this.namespace = namespace;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  /** Reports progress to the caller. */
  report(message: string): void {
    this.#call.onProgress({ message, done: null, total: null });
  }

  /** Runs an operation of the control plane, with its checks, quotas and events. @throws PlatformError */
  async rest<Name extends RestOperationName>(
    name: Name,
    parts: Parts<Name>,
    signal: AbortSignal = this.signal,
  ): Promise<RestOutput<RestOperations[Name]>> {
    const { database, rest } = this.#bench;
    const { caller, requestId, sourceAddress, userAgent } = this.#call;
    const organization = await findOrganization(database, this.namespace);
    if (organization === undefined) {
      throw new PlatformError('org_not_found', `There is nothing in namespace '${this.namespace}' yet`);
    }
    const authority = await authorityOfCaller(database, name, caller, organization);
    const part = (key: 'params' | 'query' | 'headers' | 'body', otherwise: unknown) =>
      checkRestInput(name, key, parts[key] ?? otherwise);
    const input = {
      params: part('params', {}),
      query: part('query', {}),
      headers: part('headers', {}),
      body: part('body', undefined),
    };
    const answer = await rest.call(
      name,
      {
        input,
        slug: undefined,
        authorization: undefined,
        idempotencyKey: undefined,
        identity: '',
        bodyDigest: undefined,
        context: {
          requestId,
          sourceAddress,
          userAgent,
          expectedVersion: null,
          signal,
          setHeader: () => undefined,
          setSession: () => undefined,
        },
      },
      authority,
    );
    if (answer.kind === 'replay') throw new Error('a call without a key was repeated');
    // The handler of this operation returned it.
    return answer.output as RestOutput<RestOperations[Name]>;
  }

  /** Whether the namespace was ever used. */
  async hasAnything(): Promise<boolean> {
    return (await findOrganization(this.#bench.database, this.namespace)) !== undefined;
  }

  /** @throws PlatformError `sandbox_not_found` */
  async sandbox(name: string): Promise<SandboxRecord> {
    const found = await findSandbox(this.#bench.database, this.namespace, name);
    if (found === undefined) throw notFound(name);
    return found;
  }

  /** @throws PlatformError that names the path */
  async files<T>(
    sandbox: string,
    path: string,
    work: (files: ChannelFiles, path: string) => Promise<T>,
  ): Promise<T> {
    return await this.#bench.files.use({ namespace: this.namespace, sandbox, path }, work);
  }

  /** Runs a program in the sandbox to its end. @throws PlatformError */
  async run(input: OperationInput<'sandbox.command.run'>): Promise<OperationOutput<'sandbox.command.run'>> {
    const { caller, requestId, signal, onProgress } = this.#call;
    const named = { ...input, namespace: this.namespace };
    const context = { requestId, signal, onProgress };
    return await this.#bench.dispatch.call('sandbox.command.run', named, caller, context);
  }

  /** Whether a port of the sandbox is being listened on; null when the sandbox does not answer. */
  async listens({ id }: SandboxRecord, port: number): Promise<boolean | null> {
    const signal = AbortSignal.any([this.signal, AbortSignal.timeout(CONNECT_MS)]);
    try {
      const channel = await this.#bench.channels.get(id);
      (await channel.connectTcp(LOOPBACK, port, { signal })).close();
      return true;
    } catch (error) {
      if (error instanceof ChannelError && error.kind === 'refused') return false;
      if (error instanceof ChannelError || PlatformError.is(error) || signal.aborted) return null;
      throw error;
    }
  }

  /** @returns the file of a text that is too long to be shown */
  async keep(
    sandbox: string,
    text: string,
  ): Promise<{ readonly path: string } | { readonly failure: string }> {
    return await this.#bench.keptOutput.keep(this, sandbox, text);
  }
}
