import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import type { OrchestratorPorts } from './ports.ts';

const never = new AbortController().signal;
const ignore = () => undefined;

/** What the suites need: ports of one orchestrator. `spec` names an image that exists there and has `sh`. */
export interface OpenedOrchestrator extends Pick<OrchestratorPorts, 'orchestrator' | 'imageStore' | 'nodes'> {
  readonly spec: SandboxSpec;
}

/** Every bullet of the comment of `Nodes`, and what `Orchestrator` says about nodes. */
export function nodesSuite(name: string, open: (t: TestContext) => Promise<OpenedOrchestrator>): void {
  describe(`the nodes of ${name}`, () => {
    test('reports how many sandboxes are kept started for later callers', async (t) => {
      const { nodes } = await open(t);
      const pools = await nodes.pool(never);
      assert.ok(pools.length > 0);
      for (const { max, waiting, handedOut, missed } of pools)
        assert.ok(waiting.length <= max && handedOut >= 0 && missed >= 0);
    });

    test('says what it can do', async (t) => {
      const { nodes } = await open(t);
      const { isolation, problem } = await nodes.describe(never);
      assert.notEqual(isolation, null);
      assert.equal(problem, null);
      const listed = await nodes.listNodes(never);
      assert.ok(listed.length > 0);
      for (const node of listed) {
        assert.equal(node.problem, null);
        assert.equal(node.description?.isolation, isolation);
      }
    });

    test('names the node of a sandbox everywhere, or has one node without a name', async (t) => {
      const { orchestrator, nodes, spec } = await open(t);
      const names = (await nodes.listNodes(never)).map(({ name }) => name);
      const id = randomUUID();
      t.after(() => orchestrator.remove(id, never));
      const node = await orchestrator.place({ id, spec }, never);
      assert.ok(names.includes(node), `${node} is none of ${names.join()}`);
      const request = { id, spec, ...(node === null ? {} : { node }) };
      const reports = [
        await orchestrator.create(request, ignore, never),
        await orchestrator.start(id, never),
        await orchestrator.get(id, never),
        ...(await orchestrator.list(never)).filter((report) => report.id === id),
        ...(await orchestrator.metrics(never)).filter((usage) => usage.id === id),
      ];
      assert.deepEqual(
        reports.map((report) => report?.node ?? null),
        [node, node, node, node, node],
      );
      const spaces = await nodes.storage(never);
      assert.deepEqual(
        spaces.map((space) => space.node),
        names,
      );
    });
  });
}
