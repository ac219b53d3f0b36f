import { runOutcomes } from './run-outcomes.ts';
import { snapshots } from './snapshots.ts';
import { volumeFiles } from './volume-files.ts';
import { volumes } from './volumes.ts';

runOutcomes([snapshots, volumes, volumeFiles]);
