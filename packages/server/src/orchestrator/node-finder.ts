import { PlatformError } from '@svc/contract';
import type { FleetMembers } from './fleet-members.ts';
import type { OrchestratorPorts } from './ports.ts';

/** Beyond this number all are forgotten; then they are asked for again. */
const MAX_KNOWN = 50_000;

export interface Finding {
  /** The node in the store's row; null: it was never made; undefined: the store does not say. */
  readonly stored: (id: string) => Promise<string | null | undefined>;
  /** Whether the node has it. */
  readonly isThere: (ports: OrchestratorPorts, id: string, signal: AbortSignal) => Promise<boolean>;
}

/** Finds the node of a sandbox, volume or snapshot: remembered, or from the store's row, or by asking every node. */
export class NodeFinder {
  readonly #members: FleetMembers;
  readonly #finding: Finding;
  readonly #known = new Map<string, string>();

  constructor(members: FleetMembers, finding: Finding) {
    this.#members = members;
    this.#finding = finding;
  }

  note(id: string, node: string): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(id, node);
  }

  /** It is not, or no longer, where it was. */
  forget(id: string): void {
    this.#known.delete(id);
  }

  /**
   * @returns undefined when no node has it
   * @throws PlatformError `orchestrator_unreachable` when a node that is away may have it
   */
  async find(id: string, signal: AbortSignal): Promise<string | undefined> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const stored = await this.#finding.stored(id);
    if (typeof stored === 'string') {
      this.note(id, stored);
      return stored;
    }
    const asked = await this.#members.ask(
      async (ports, deadline) => await this.#finding.isThere(ports, id, deadline),
      signal,
    );
    const found = asked.answers.find(({ answer }) => answer)?.node;
    if (found !== undefined) this.note(id, found);
    // A row without a node says that it was never made.
    else if (stored === undefined) this.#members.requireAll(asked);
    return found;
  }

  /**
   * Calls the node that has it. One that has it no longer is forgotten, so that the next call looks again.
   * @param code of the error when it is nowhere
   */
  async call<Answer>(
    id: string,
    code: 'sandbox_not_found' | 'volume_not_found' | 'snapshot_not_found',
    question: (ports: OrchestratorPorts, node: string) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer> {
    const node = await this.find(id, signal);
    if (node === undefined) throw new PlatformError(code, `no node has ${id}`, { details: { id } });
    try {
      return await question(this.#members.portsOf(node), node);
    } catch (error) {
      if (PlatformError.is(error, code)) this.forget(id);
      throw error;
    }
  }
}
