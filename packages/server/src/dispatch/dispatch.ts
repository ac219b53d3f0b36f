import {
  ALL_NAMESPACES,
  checkInput,
  DEFAULT_NAMESPACE,
  OPERATIONS,
  type OperationInput,
  type OperationName,
  type OperationOutput,
} from '@svc/contract';
import type { Progress } from '../sandboxes/start-progress.ts';
import { requireReach, type Caller } from '../access/caller.ts';

/** The part of a call that its transport provides. */
export interface CallContext {
  readonly requestId: string;
  /** Aborts when the caller goes away or cancels. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** What a handler gets besides its input. */
export interface Call extends CallContext {
  readonly caller: Caller;
  /** The namespace of the input with its default; `*` only where the operation's access is `reach`. */
  readonly namespace: string;
}

export type Handler<Name extends OperationName> = (
  input: OperationInput<Name>,
  call: Call,
) => Promise<OperationOutput<Name>>;

/** One handler per operation: a missing one does not compile. */
export type Handlers = { readonly [Name in OperationName]: Handler<Name> };

/** Called at the end of every call, for logs and metrics. `failure` is null on success. */
export type OnCallEnd = (end: {
  readonly operation: OperationName;
  readonly requestId: string;
  readonly namespace: string;
  readonly durationMs: number;
  readonly failure: unknown;
}) => void;

/** Called with every failure before the caller gets it, to record it. @returns the error that the caller gets */
export type OnFailure = (
  failed: {
    readonly operation: OperationName;
    readonly requestId: string;
    readonly namespace: string;
    readonly caller: Caller;
  },
  error: unknown,
) => Promise<unknown>;

/**
 * Runs every call, from all transports: validates the input, checks the caller's rights, runs the handler. The transport has
 * authenticated the caller before, so that callers without a credential learn nothing.
 */
export class Dispatch {
  readonly #handlers: Handlers;
  readonly #onCallEnd: OnCallEnd;
  readonly #onFailure: OnFailure;

  constructor(handlers: Handlers, onCallEnd: OnCallEnd, onFailure: OnFailure) {
    this.#handlers = handlers;
    this.#onCallEnd = onCallEnd;
    this.#onFailure = onFailure;
  }

  /** @throws PlatformError; anything else that is thrown is a bug. */
  async call<Name extends OperationName>(
    name: Name,
    input: unknown,
    caller: Caller,
    context: CallContext,
  ): Promise<OperationOutput<Name>> {
    const startedAt = performance.now();
    const report = (failure: unknown, namespace = '') =>
      this.#onCallEnd({
        operation: name,
        requestId: context.requestId,
        namespace,
        durationMs: performance.now() - startedAt,
        failure,
      });
    let namespace = '';
    try {
      const checked = checkInput(name, input);
      namespace = authorize(name, checked, caller);
      const output = await this.#handlers[name](checked, { ...context, caller, namespace });
      report(null, namespace);
      return output;
    } catch (error) {
      report(error);
      const { requestId } = context;
      if (namespace === '') throw error;
      throw await this.#onFailure({ operation: name, requestId, namespace, caller }, error);
    }
  }
}

function authorize(name: OperationName, input: { namespace?: string | null }, caller: Caller): string {
  const namespace = input.namespace ?? DEFAULT_NAMESPACE;
  const { access } = OPERATIONS[name];
  const isLimitedByHandler = access === 'reach' && namespace === ALL_NAMESPACES;
  if (access !== 'anyone' && !isLimitedByHandler) requireReach(caller, namespace);
  return namespace;
}
