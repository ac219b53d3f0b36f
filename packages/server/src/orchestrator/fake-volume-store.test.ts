import { FakeVolumeStore } from './fake-volume-store.ts';
import { volumeStoreSuite } from './volume-store.suite.ts';

volumeStoreSuite('in memory', () => new FakeVolumeStore());
