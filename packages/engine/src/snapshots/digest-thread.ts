import { parentPort, workerData } from 'node:worker_threads';
import { digestBlocks } from './block-digest.ts';
import type { DataRange } from './data-ranges.ts';

// The worker thread that `digestDisk` starts: hashes one file and ends.
const { path, ranges }: { readonly path: string; readonly ranges: readonly DataRange[] } = workerData;
parentPort?.postMessage(await digestBlocks(path, ranges), []);
