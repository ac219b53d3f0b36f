import type {
  IsolationClass,
  NodeReport,
  OfNode,
  OrchestratorDescription,
  PoolView,
  SpaceUser,
  SpaceView,
} from '@svc/contract/orchestrator';
import { describeAbsence, type FleetMembers } from './fleet-members.ts';
import type { Nodes } from './nodes.ts';

/** The nodes of a fleet. */
export class FleetNodes implements Nodes {
  readonly #members: FleetMembers;

  constructor(members: FleetMembers) {
    this.#members = members;
  }

  /** What a node of the fleet can do, the fleet can. */
  async describe(signal: AbortSignal): Promise<OrchestratorDescription> {
    const { answers } = await this.#describeEach(signal);
    const descriptions = answers.map(({ answer }) => answer);
    const healthy = descriptions.filter(({ problem }) => problem === null);
    const first = healthy[0] ?? descriptions[0];
    const problems = answers.map(({ node, answer }) => `${node}: ${answer.problem}`);
    return {
      version: first?.version ?? '',
      isolation: first?.isolation ?? null,
      problem: healthy.length > 0 ? null : problems.join('; '),
      classes: mergeClasses(descriptions),
      sandboxes: descriptions.reduce((sum, { sandboxes }) => sum + sandboxes, 0),
    };
  }

  async listNodes(signal: AbortSignal): Promise<readonly NodeReport[]> {
    const { answers, absent } = await this.#describeEach(signal);
    const known = new Map(answers.map(({ node, answer }) => [node, answer]));
    const away = new Map(absent.map(({ node, error }) => [node, describeAbsence(node, error)]));
    return this.#members.all.map(({ name }) => {
      const description = known.get(name) ?? null;
      return {
        name,
        problem: description === null ? (away.get(name) ?? null) : description.problem,
        description,
      };
    });
  }

  async storage(signal: AbortSignal): Promise<readonly OfNode<SpaceView>[]> {
    const { answers } = await this.#members.ask(
      async ({ nodes }, deadline) => await nodes.storage(deadline),
      signal,
    );
    return answers.flatMap(({ node, answer }) => answer.map((space) => ({ ...space, node })));
  }

  async storageUsers(signal: AbortSignal): Promise<readonly SpaceUser[]> {
    const { answers } = await this.#members.ask(
      async ({ nodes }, deadline) => await nodes.storageUsers(deadline),
      signal,
    );
    return answers.flatMap(({ answer }) => answer).toSorted((a, b) => b.bytes - a.bytes);
  }

  async pool(signal: AbortSignal): Promise<readonly OfNode<PoolView>[]> {
    const { answers } = await this.#members.ask(
      async ({ nodes }, deadline) => await nodes.pool(deadline),
      signal,
    );
    return answers.flatMap(({ node, answer }) => answer.map((pool) => ({ ...pool, node })));
  }

  async #describeEach(signal: AbortSignal) {
    return await this.#members.ask(async ({ nodes }, deadline) => await nodes.describe(deadline), signal);
  }
}

/** Each runtime once: as a node that can use it says, if there is one. */
function mergeClasses(descriptions: readonly OrchestratorDescription[]): readonly IsolationClass[] {
  const classes = new Map<string, IsolationClass>();
  for (const each of descriptions.flatMap((description) => description.classes)) {
    const key = `${each.isolation} ${each.runtime}`;
    if (classes.get(key)?.isUsable !== true) classes.set(key, each);
  }
  return [...classes.values()];
}
