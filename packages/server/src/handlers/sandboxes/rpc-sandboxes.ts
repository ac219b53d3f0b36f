import { randomUUID } from 'node:crypto';
import { isErrorCode, PlatformError, type SandboxSpec } from '@svc/contract';
import { parseReference } from '@svc/contract/image-reference';
import { abortable, KeyedMutex } from '@svc/contract/async';
import type { Logger } from 'pino';
import { createActorOfCaller } from '../../access/actor-of-caller.ts';
import { isOperator } from '../../access/caller.ts';
import type { Call, Handlers } from '../../dispatch/dispatch.ts';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import { checkSandbox, type CheckedSandbox, type WantedSandbox } from '../../sandboxes/check-sandbox.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';
import { makeSandbox, type MakeParts } from '../../sandboxes/make-sandbox.ts';
import { noteFailure } from '../../sandboxes/observe.ts';
import type { Progress } from '../../sandboxes/start-progress.ts';
import { requestRecovery, requestRemoval, requestStart, requestStop } from '../../sandboxes/desired-state.ts';
import type { Database } from '../../store/database.ts';
import { inTransaction } from '../../store/in-transaction.ts';
import { lockLivingOrganization } from '../../store/lock-organization.ts';
import {
  findOrganization,
  findOrMakeOrganization,
  type OrganizationRecord,
} from '../../store/organizations.ts';
import { findSandbox, getSandbox, type EventCaller, type SandboxRecord } from '../../store/sandboxes.ts';
import { notFound } from './running-sandbox.ts';
import { readConfig } from './sandbox-spec.ts';
import { inWordsOfConfig } from './words-of-config.ts';

const ASK_TIMEOUT_MS = 60_000;
const REST_STATES = new Set(['created', 'stopped', 'failed']);

export interface NamedParts extends MakeParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly convergence: Convergence;
  readonly channels: ChannelPool;
  readonly logger: Logger;
  /** How long a sandbox may be unavailable before a member must decide. */
  readonly recoveryMs: number;
  /** Addresses of this host that callers may publish ports on, beside loopback. */
  readonly publishAddresses: readonly string[];
}

export function sandboxHandlers(parts: NamedParts): Pick<Handlers, 'sandbox.start' | 'sandbox.stop'> {
  const named = new NamedSandboxes(parts);
  const actorOf = createActorOfCaller(parts.database);
  const eventCaller = async ({ caller, requestId }: Call): Promise<EventCaller> => ({
    actor: await actorOf(caller),
    requestId,
    sourceAddress: null,
  });
  return {
    'sandbox.start': async ({ sandbox, config }, call) => {
      const { namespace, onProgress, signal } = call;
      try {
        const wanted = readConfig(sandbox, config ?? {}, { hasHostPaths: isOperator(call.caller) });
        const by = await eventCaller(call);
        // The start continues when its caller disconnects, so that no sandbox is left half-started.
        await abortable(named.start(namespace, sandbox, wanted, by, onProgress), signal);
      } catch (error) {
        throw inWordsOfConfig(error);
      }
      return `Sandbox ${sandbox} started successfully`;
    },
    'sandbox.stop': async ({ sandbox }, call) => {
      await abortable(named.stop(call.namespace, sandbox, await eventCaller(call)), call.signal);
      return `Sandbox ${sandbox} stopped successfully`;
    },
  };
}

/**
 * Starts and stops sandboxes by name, and answers when it is done. A start that fails leaves the sandbox wanted stopped; a stop is refused
 * when the engine is away, and one that fails later leaves it wanted stopped too, says so, and is repeated.
 */
class NamedSandboxes {
  readonly #parts: NamedParts;
  readonly #starts = new KeyedMutex();

  constructor(parts: NamedParts) {
    this.#parts = parts;
  }

  /** `wanted` undefined: from what is stored. Resolves when the sandbox runs and its channel answers. */
  async start(
    namespace: string,
    name: string,
    wanted: WantedSandbox | undefined,
    by: EventCaller,
    onProgress: (progress: Progress) => void,
  ): Promise<void> {
    const config = wanted && checkSandbox(wanted, this.#parts.publishAddresses);
    await this.#starts.run(`${namespace}/${name}`, async () => {
      const stored = await findSandbox(this.#parts.database, namespace, name);
      if (stored === undefined && config === undefined) throw notFound(name);
      const isSame = stored !== undefined && (config === undefined || isSameConfiguration(stored, config));
      if (stored !== undefined && (await this.#isRunning(stored, by))) {
        if (isSame) return;
        const message = `Sandbox '${name}' is running with another configuration; stop it first`;
        throw new PlatformError('invalid_state_transition', message, { details: { state: 'running' } });
      }
      if (isSame) return await this.#startStored(stored, by, onProgress);
      // The first test above left only this case without a config.
      if (config === undefined) throw notFound(name);
      const { id } = await this.#replace(namespace, config, by);
      await this.#settleStart(id, { isNew: true, onProgress });
    });
  }

  async stop(namespace: string, name: string, by: EventCaller): Promise<void> {
    const stored = await findSandbox(this.#parts.database, namespace, name);
    if (stored === undefined) throw notFound(name);
    // Before anything is stored: while the engine is unavailable the stop is refused, and changes nothing.
    await this.#parts.orchestrator.get(stored.id, AbortSignal.timeout(ASK_TIMEOUT_MS));
    await this.#inTransaction(stored, async (transaction, record) => {
      if (!REST_STATES.has(record.observed)) await requestStop(transaction, record, by);
    });
    this.#parts.convergence.interrupt(stored.id);
    try {
      await this.#parts.convergence.converge(stored.id, { isAwaited: true });
    } catch (error) {
      throw stillWanted(error);
    }
  }

  async #startStored(
    stored: SandboxRecord,
    by: EventCaller,
    onProgress: (progress: Progress) => void,
  ): Promise<void> {
    // It may have ended unnoticed, or be stopping: only a sandbox in a final state can be started.
    if (!REST_STATES.has(stored.observed))
      await this.#parts.convergence.converge(stored.id, { isAwaited: true });
    await this.#inTransaction(stored, async (transaction, record, organization) => {
      if (record.removedAt !== null) throw notFound(stored.name);
      if (record.observed !== 'running') await requestStart(transaction, organization, record, by);
    });
    await this.#settleStart(stored.id, { onProgress });
  }

  async #settleStart(
    id: string,
    options: { readonly isNew?: boolean; readonly onProgress: (progress: Progress) => void },
  ): Promise<void> {
    try {
      await this.#parts.convergence.converge(id, { ...options, isAwaited: true });
    } catch (error) {
      await this.#giveUp(id, error);
      throw error;
    }
    const record = await getSandbox(this.#parts.database, id);
    if (record?.observed !== 'running') throw notStarted(record);
    await this.#parts.channels.get(id);
  }

  /** A sandbox whose start was answered with a failure must not run later. */
  async #giveUp(id: string, error: unknown): Promise<void> {
    const { database } = this.#parts;
    const record = await getSandbox(database, id);
    if (record?.observed !== 'starting') return;
    const message = error instanceof Error ? error.message : String(error);
    const code = PlatformError.is(error) ? error.code : 'internal';
    await noteFailure(database, record, { code, message });
  }

  async #isRunning(record: SandboxRecord, by: EventCaller): Promise<boolean> {
    if (record.desired !== 'running' || record.observed === 'starting') return false;
    const { orchestrator, recoveryMs } = this.#parts;
    const report = await orchestrator.get(record.id, AbortSignal.timeout(ASK_TIMEOUT_MS));
    if (report?.state !== 'running') return false;
    if (record.observed === 'recovery_decision_required') {
      // A start is the decision that it runs on.
      await this.#inTransaction(record, async (transaction, now) => {
        await requestRecovery(transaction, now, 'wait', recoveryMs, by);
      });
    }
    await this.#parts.convergence.converge(record.id);
    await this.#parts.channels.get(record.id);
    return true;
  }

  /** Makes a sandbox that is wanted running in place of the one that has its name. */
  async #replace(namespace: string, sandbox: CheckedSandbox, by: EventCaller): Promise<SandboxRecord> {
    const { database } = this.#parts;
    const organization = await findOrMakeOrganization(database, namespace);
    if (organization === undefined) throw noOrganization(namespace);
    let old: SandboxRecord | undefined;
    const request = { id: randomUUID(), organization, sandbox, isStarted: true, caller: by };
    const added = await makeSandbox(this.#parts, request, (work) =>
      inTransaction(database, async (transaction) => {
        await lockLivingOrganization(transaction, organization.id);
        old = await findSandbox(transaction, namespace, sandbox.name);
        if (old !== undefined) await requestRemoval(transaction, old, by);
        return await work(transaction);
      }),
    );
    if (old !== undefined) await this.#discard(old.id);
    return added;
  }

  /** What is left of it now is removed by the next reconciliation. */
  async #discard(sandboxId: string): Promise<void> {
    try {
      await this.#parts.convergence.converge(sandboxId, { isAwaited: true });
    } catch (error) {
      this.#parts.logger.warn({ sandboxId, err: error }, 'an old sandbox could not be removed yet');
    }
  }

  async #inTransaction(
    { id, namespace, name }: SandboxRecord,
    work: (transaction: Database, record: SandboxRecord, organization: OrganizationRecord) => Promise<void>,
  ): Promise<void> {
    await inTransaction(this.#parts.database, async (transaction) => {
      const organization = await requireOrganization(transaction, namespace);
      const record = await getSandbox(transaction, id);
      if (record === undefined || record.removedAt !== null) throw notFound(name);
      await work(transaction, record, organization);
    });
  }
}

async function requireOrganization(transaction: Database, namespace: string): Promise<OrganizationRecord> {
  const found = await findOrganization(transaction, namespace);
  if (found === undefined) throw noOrganization(namespace);
  await lockLivingOrganization(transaction, found.id);
  return found;
}

function noOrganization(namespace: string): PlatformError {
  return new PlatformError('org_not_found', `There is no organization '${namespace}'`);
}

/** Adds to the error that the stop is stored, and is carried out when engine and server are available. */
function stillWanted(error: unknown): unknown {
  if (!PlatformError.is(error)) return error;
  const message = `${error.message}; the stop is written down, and is done as soon as the engine can`;
  return new PlatformError(error.code, message, {
    details: { ...error.details, state: 'stopping' },
    cause: error,
  });
}

function notStarted(record: SandboxRecord | undefined): PlatformError {
  const { failureCode: code = null, failureMessage = null, observed = 'stopped' } = record ?? {};
  if (isErrorCode(code)) return new PlatformError(code, failureMessage ?? 'it could not be started');
  const message = failureMessage ?? `it is ${observed}: it was stopped while it started`;
  return new PlatformError('start_failed', message, { details: { state: observed } });
}

/**
 * Specs are made by one function from checked fields, so equal ones have equal text, but for names of one image: `python` is
 * `python:latest`. A configuration that says nothing of the network leaves it as it is: it may have been changed since.
 */
function isSameConfiguration(record: SandboxRecord, config: CheckedSandbox): boolean {
  const { network: _network, ...rest } = record.spec;
  const stored = config.spec.network === undefined ? rest : record.spec;
  return (
    textOf(stored) === textOf(config.spec) && JSON.stringify(record.ports) === JSON.stringify(config.ports)
  );
}

function textOf(spec: SandboxSpec): string {
  const image = spec.image.type === 'oci' ? parseReference(spec.image.reference) : spec.image;
  return JSON.stringify({ ...spec, image });
}
