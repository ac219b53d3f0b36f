import { after, before } from 'node:test';
import { enginePorts } from '../../packages/server/src/orchestrator/engine-ports.ts';
import { orchestratorSuite } from '../../packages/server/src/orchestrator/orchestrator.suite.ts';
import { BUSYBOX, TestEngine } from '../engine/start-engine.ts';

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start({ args: ['--isolation', 'container'] });
});
after(() => engine.destroy());

orchestratorSuite('over the engine of this host', async () => {
  const spec = { image: { type: 'oci' as const, reference: BUSYBOX } };
  return await Promise.resolve({ ...enginePorts(engine.client), spec });
});
