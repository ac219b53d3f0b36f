import { runsc } from './runsc.ts';
import { runtimeSuite } from './runtime.suite.ts';
import { realWorld } from '../testing/real-world.ts';

runtimeSuite('runsc', () => realWorld(runsc));
