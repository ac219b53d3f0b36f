import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { FakeOrchestrator } from './fake-orchestrator.ts';
import { nodesSuite } from '../orchestrator/nodes.suite.ts';
import { orchestratorSuite } from '../orchestrator/orchestrator.suite.ts';

const open = async () => {
  const spec = { image: { type: 'oci' as const, reference: 'x' } };
  const orchestrator = new FakeOrchestrator();
  return await Promise.resolve({ orchestrator, imageStore: orchestrator, nodes: orchestrator, spec });
};
orchestratorSuite('in memory', open);
nodesSuite('the orchestrator in memory', open);

test('an orchestrator that went away fails every call and ends every watch', async () => {
  const orchestrator = new FakeOrchestrator();
  const isAway = (error: unknown) => PlatformError.is(error, 'orchestrator_unreachable');
  const watching = orchestrator.changes(new AbortController().signal).next();
  await orchestrator.describe();
  orchestrator.goAway();
  await assert.rejects(watching, isAway);
  await assert.rejects(orchestrator.list(), isAway);
  orchestrator.comeBack();
  assert.deepEqual(await orchestrator.list(), []);
});
