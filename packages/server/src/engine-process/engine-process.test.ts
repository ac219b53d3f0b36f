import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { makeFolder, waitUntil } from '../test-server.ts';
import { EngineProcess } from './engine-process.ts';

const logger = pino({ level: 'silent' });

test('an engine that ends is started again, and one that is told to stop is not', async (t) => {
  const dataFolder = await makeFolder(t);
  const starts = join(dataFolder, 'starts');
  const script = `echo started >> ${starts}; exec sleep 1000`;
  const engine = new EngineProcess({ dataFolder, command: ['sh', '-c', script], logger });
  t.after(() => engine.stop());
  const count = async () => (await readFile(starts, 'utf8').catch(() => '')).split('\n').length - 1;
  const pid = async () => Number(await readFile(join(dataFolder, 'engine.pid'), 'utf8').catch(() => ''));
  await waitUntil(async () => (await count()) === 1 && (await pid()) > 0);
  const first = await pid();
  process.kill(first, 'SIGKILL');
  await waitUntil(async () => (await count()) === 2 && (await pid()) > 0 && (await pid()) !== first);
  const second = await pid();
  await engine.stop();
  assert.throws(() => process.kill(second, 0), /ESRCH/);
  assert.equal(await count(), 2);
});

test('an engine that cannot start is tried again later and later, and does not end the server', async (t) => {
  const dataFolder = await makeFolder(t);
  await writeFile(join(dataFolder, 'count'), '');
  const script = `printf x >> ${join(dataFolder, 'count')}; exit 1`;
  const engine = new EngineProcess({ dataFolder, command: ['sh', '-c', script], logger });
  t.after(() => engine.stop());
  const tries = async () => (await readFile(join(dataFolder, 'count'), 'utf8')).length;
  await waitUntil(async () => (await tries()) >= 3);
  assert.ok((await tries()) < 10);
  const missing = new EngineProcess({ dataFolder, command: ['/no/such/program'], logger });
  await missing.stop();
});
