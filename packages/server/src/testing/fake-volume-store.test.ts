import { FakeVolumeStore } from './fake-volume-store.ts';
import { volumeStoreSuite } from '../orchestrator/volume-store.suite.ts';

volumeStoreSuite('in memory', () => new FakeVolumeStore());
