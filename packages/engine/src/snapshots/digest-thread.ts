import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { dataRanges } from './data-ranges.ts';

const CHUNK_BYTES = 1024 * 1024;

// The body of the thread that `digestDisk` starts: hashes one file, holes included, and ends.
const path = String(workerData);
const hash = createHash('sha256');
const zeros = Buffer.alloc(CHUNK_BYTES);
const chunk = Buffer.alloc(CHUNK_BYTES);
const file = openSync(path, 'r');
const { size } = fstatSync(file);
let done = 0;
for (const { start, end } of dataRanges(path, size)) {
  hashZeros(start - done);
  hashData(start, end);
  done = end;
}
hashZeros(size - done);
closeSync(file);
parentPort?.postMessage(`sha256:${hash.digest('hex')}`, []);

function hashZeros(bytes: number): void {
  for (let left = bytes; left > 0; left -= CHUNK_BYTES) hash.update(zeros.subarray(0, left));
}

function hashData(start: number, end: number): void {
  for (let at = start; at < end;) {
    const bytes = readSync(file, chunk, 0, Math.min(CHUNK_BYTES, end - at), at);
    if (bytes === 0) throw new Error('the disk became shorter while it was hashed');
    hash.update(chunk.subarray(0, bytes));
    at += bytes;
  }
}
