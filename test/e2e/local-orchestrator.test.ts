import { after, before } from 'node:test';
import { enginePorts } from '../../packages/server/src/orchestrator/engine-ports.ts';
import { nodesSuite } from '../../packages/server/src/orchestrator/nodes.suite.ts';
import { orchestratorSuite } from '../../packages/server/src/orchestrator/orchestrator.suite.ts';
import { BUSYBOX, TestEngine } from '../engine/start-engine.ts';

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start({ args: ['--isolation', 'container'] });
});
after(() => engine.destroy());

const open = async () => {
  const spec = { image: { type: 'oci' as const, reference: BUSYBOX } };
  return await Promise.resolve({ ...enginePorts(engine.client), spec });
};
orchestratorSuite('over the engine of this host', open);
nodesSuite('the engine of this host', open);
