import { PlatformError } from '@svc/contract';
import type { ChannelClient } from '@svc/contract/channel';
import type { EventKind } from '@svc/contract/rest';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import type { Actor } from '../../store/events.ts';
import { getSandbox } from '../../store/sandboxes.ts';
import { findSshAccess, type SshAccess } from '../../store/ssh-keys.ts';
import type { EventQueue } from '../channel/event-queue.ts';

const OPEN_MS = 10_000;
const MAX_COMMAND_LENGTH = 256;

export interface SshVisitParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly events: EventQueue;
}

/** One authenticated connection: the key, the sandbox and the client's address. */
export class SshVisit {
  readonly access: SshAccess;
  readonly #parts: SshVisitParts;
  readonly #id: string;
  readonly #sourceAddress: string | null;
  readonly #startedAt = Date.now();
  readonly #counts = { shells: 0, commands: 0, transfers: 0, forwards: 0 };

  constructor(
    parts: SshVisitParts,
    visit: { readonly id: string; readonly access: SshAccess; readonly sourceAddress: string | null },
  ) {
    this.#parts = parts;
    this.#id = visit.id;
    this.access = visit.access;
    this.#sourceAddress = visit.sourceAddress;
  }

  count(what: 'shells' | 'commands' | 'transfers' | 'forwards'): void {
    this.#counts[what] += 1;
  }

  /** Whether the key still opens the sandbox: it may have been revoked, or its user may have left the organization. */
  async isStillAllowed(): Promise<boolean> {
    const { key, sandbox } = this.access;
    // By id: it may have been renamed, and its slug may belong to another sandbox now.
    const now = await getSandbox(this.#parts.database, sandbox.id);
    if (now === undefined || now.removedAt !== null) return false;
    const access = await findSshAccess(this.#parts.database, key.fingerprint, now.slug);
    return access !== undefined && access.sandbox.id === sandbox.id;
  }

  /** @throws PlatformError with a message for the client */
  async openChannel(): Promise<ChannelClient> {
    const { orchestrator, database } = this.#parts;
    const { id, name } = this.access.sandbox;
    try {
      return await orchestrator.openChannel(id, AbortSignal.timeout(OPEN_MS));
    } catch (error) {
      if (!PlatformError.is(error)) {
        throw new PlatformError('unavailable', 'the sandbox did not answer; try again', { cause: error });
      }
      if (error.code !== 'sandbox_not_running' && error.code !== 'sandbox_not_found') throw error;
      const state = (await getSandbox(database, id))?.observed ?? 'gone';
      const hint = `sandbox '${name}' is ${state}; start it with: svc start ${name}`;
      throw new PlatformError('sandbox_not_running', hint, { cause: error });
    }
  }

  async noteOpened(): Promise<void> {
    await this.#append({ type: 'ssh_session_opened', category: 'ssh' }, {});
  }

  async noteClosed(reason: string): Promise<void> {
    const durationMs = Date.now() - this.#startedAt;
    await this.#append(
      { type: 'ssh_session_closed', category: 'ssh' },
      { reason, duration_ms: durationMs, ...this.#counts },
    );
  }

  /** Records the process without its environment, which may hold secrets. */
  async noteExec(command: string, tty: boolean): Promise<void> {
    const shown =
      command.length > MAX_COMMAND_LENGTH
        ? `${command.slice(0, MAX_COMMAND_LENGTH).toWellFormed()}…`
        : command.toWellFormed();
    await this.#append({ type: 'exec_started', category: 'exec' }, { command: shown, user: SSH_USER, tty });
  }

  async #append(kind: EventKind, payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { sandbox } = this.access;
    await this.#parts.events.append({
      organizationId: sandbox.organizationId,
      ...kind,
      actor: this.#actor(),
      payload: { sandbox_id: sandbox.id, sandbox_name: sandbox.name, session_id: this.#id, ...payload },
      requestId: null,
      sourceAddress: this.#sourceAddress,
    });
  }

  #actor(): Actor {
    const { id, fingerprint, name } = this.access.key;
    return { kind: 'ssh_key', key_id: id, fingerprint, label: name };
  }
}

/** SFTP has the rights of root in the sandbox, so shells have them too. */
export const SSH_USER = 'root';
