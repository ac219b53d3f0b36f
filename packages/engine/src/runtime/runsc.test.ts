import { runsc } from './runsc.ts';
import { runtimeSuite } from './runtime.suite.ts';
import { realWorld } from './test/real-world.ts';

runtimeSuite('runsc', () => realWorld(runsc));
