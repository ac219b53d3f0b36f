import { PlatformError } from '@svc/contract';
import type { OrchestratorPorts } from './ports.ts';

/** Longer than a busy node takes for a call that it answers from memory. */
const ASK_TIMEOUT_MS = 10_000;

/** A node of a fleet, by the name that the operator gave it, with the ports of its engine. */
export interface Member {
  readonly name: string;
  readonly ports: OrchestratorPorts;
}

export interface Answers<Answer> {
  readonly answers: readonly { readonly node: string; readonly answer: Answer }[];
  /** Nodes that are away, and why. */
  readonly absent: readonly { readonly node: string; readonly error: unknown }[];
}

/** The nodes of a fleet, in the order of the operator's list. */
export class FleetMembers {
  readonly all: readonly Member[];
  readonly #byName: ReadonlyMap<string, Member>;

  constructor(members: readonly Member[]) {
    this.all = members;
    this.#byName = new Map(members.map((member) => [member.name, member]));
  }

  /** @throws PlatformError `orchestrator_unreachable` when the operator's list has no such node (any more) */
  portsOf(node: string): OrchestratorPorts {
    const member = this.#byName.get(node);
    if (member !== undefined) return member.ports;
    const message = `node ${node} is not in the server's list of nodes; add it again`;
    throw new PlatformError('orchestrator_unreachable', message, { details: { node } });
  }

  /** Asks every node at once. @throws what the first node says when every node is away, and each error that is not about that */
  async ask<Answer>(
    question: (ports: OrchestratorPorts, signal: AbortSignal) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answers<Answer>> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(ASK_TIMEOUT_MS)]);
    const asked = await Promise.allSettled(
      this.all.map(async ({ ports }) => await question(ports, deadline)),
    );
    signal.throwIfAborted();
    const answers: { node: string; answer: Answer }[] = [];
    const absent: { node: string; error: unknown }[] = [];
    for (const [index, result] of asked.entries()) {
      const node = this.all[index]?.name ?? '';
      if (result.status === 'fulfilled') answers.push({ node, answer: result.value });
      else if (isAway(result.reason)) absent.push({ node, error: result.reason });
      else throw result.reason;
    }
    const [first] = absent;
    if (answers.length === 0 && first !== undefined) throw awayError(first.node, first.error);
    return { answers, absent };
  }

  /** As `ask`, when an answer without one of the nodes would be wrong. @throws PlatformError `orchestrator_unreachable` */
  requireAll({ absent }: Pick<Answers<unknown>, 'absent'>): void {
    const [first] = absent;
    if (first !== undefined) throw awayError(first.node, first.error);
  }
}

/** Why a node is away, in a sentence that names it. */
export function describeAbsence(node: string, error: unknown): string {
  return `node ${node} is away: ${error instanceof Error ? error.message : String(error)}`;
}

function awayError(node: string, error: unknown): PlatformError {
  return new PlatformError('orchestrator_unreachable', describeAbsence(node, error), {
    details: { node },
    cause: error,
  });
}

/** Other errors are answers, of an engine that is there. */
function isAway(error: unknown): boolean {
  if (PlatformError.is(error)) return error.code === 'orchestrator_unreachable';
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
}
