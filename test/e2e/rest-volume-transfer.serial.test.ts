import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { encodeVolumePath } from '@svc/contract/rest';
import { TestServer } from './start-server.ts';

const MIB = 1024 ** 2;
const SIZE_MIB = 1024;
/** What a process may have at most more than before, however large the file is. */
const MAX_GROWTH_BYTES = 160 * MIB;
const SAMPLE_MS = 50;

let server: TestServer;
before(async () => {
  server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
});
after(() => server.destroy());

test('1 GiB goes up and comes down again while server and engine stay small', async (t) => {
  const created = await fetch(`${server.url}/v1/volumes`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'large', capacity_gib: 2 }),
  });
  const { id } = (await created.json()) as { id: string };
  const pids = [await server.webPid(), server.engine.pid];
  const content = `${server.url}/v1/volumes/${id}/files/content`;
  const headers = { 'x-svc-file-path': encodeVolumePath('large') };
  const watch = watchMemory(pids);

  const startedAt = performance.now();
  const upload = request(content, { method: 'PUT', headers, agent: false });
  const answered = once(upload, 'response') as Promise<[IncomingMessage]>;
  await pipeline(Readable.from(chunks()), upload);
  const [answer] = await answered;
  answer.resume();
  assert.equal(answer.statusCode, 200);
  const uploadedAt = performance.now();

  const download = request(content, { headers, agent: false });
  download.end();
  const [response] = (await once(download, 'response')) as [IncomingMessage];
  let received = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) received += chunk.length;
  assert.equal(received, SIZE_MIB * MIB);
  const downloadedAt = performance.now();

  const growth = watch.end();
  const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1);
  t.diagnostic(`up in ${seconds(startedAt, uploadedAt)} s, down in ${seconds(uploadedAt, downloadedAt)} s`);
  t.diagnostic(`server grew by ${growth[0]} bytes at most, engine by ${growth[1]}`);
  for (const bytes of growth) assert.ok(bytes < MAX_GROWTH_BYTES, `${growth.join(' and ')} bytes`);
});

async function* chunks(): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(MIB);
  for (let sent = 0; sent < SIZE_MIB; sent += 1) yield await Promise.resolve(chunk);
}

/** The most that each process had more than at the beginning. */
function watchMemory(pids: readonly number[]): { end(): readonly number[] } {
  const before = pids.map(residentBytes);
  const most = [...before];
  const timer = setInterval(() => {
    for (const [index, pid] of pids.entries()) most[index] = Math.max(most[index] ?? 0, residentBytes(pid));
  }, SAMPLE_MS);
  return {
    end: () => {
      clearInterval(timer);
      return most.map((bytes, index) => bytes - (before[index] ?? 0));
    },
  };
}

function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  assert.ok(kib, `process ${pid} has no memory`);
  return Number(kib) * 1024;
}
