import { crun } from './crun.ts';
import { runtimeSuite } from './runtime.suite.ts';
import { realWorld } from '../testing/real-world.ts';

runtimeSuite('crun', () => realWorld(crun));
