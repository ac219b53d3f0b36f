import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { makeFolder } from '../testing/test-server.ts';
import { EngineProcess } from './engine-process.ts';

const logger = pino({ level: 'silent' });
const owner = { uid: 64_555, gid: 64_555 };

const place = (dataFolder: string) => ({ dataFolder, socketPath: join(dataFolder, 'engine.sock'), owner });

test('an engine that ends is started again, and one that is asked to stop is not', async (t) => {
  const dataFolder = await makeFolder(t);
  const starts = join(dataFolder, 'starts');
  const script = `echo $$ >> ${starts}; exec sleep 1000`;
  const engine = new EngineProcess({ ...place(dataFolder), command: ['sh', '-c', script], logger });
  t.after(() => engine.stop());
  const pids = async () =>
    (await readFile(starts, 'utf8').catch(() => '')).split('\n').slice(0, -1).map(Number);
  await waitUntil(async () => (await pids()).length === 1);
  process.kill((await pids())[0] ?? 0, 'SIGKILL');
  await waitUntil(async () => (await pids()).length === 2);
  const second = (await pids())[1] ?? 0;
  await engine.stop();
  assert.throws(() => process.kill(second, 0), /ESRCH/);
  assert.equal((await pids()).length, 2);
});

test('an engine that cannot start is tried again later and later, and does not end the server', async (t) => {
  const dataFolder = await makeFolder(t);
  await writeFile(join(dataFolder, 'count'), '');
  const script = `printf x >> ${join(dataFolder, 'count')}; exit 1`;
  const engine = new EngineProcess({ ...place(dataFolder), command: ['sh', '-c', script], logger });
  t.after(() => engine.stop());
  const tries = async () => (await readFile(join(dataFolder, 'count'), 'utf8')).length;
  await waitUntil(async () => (await tries()) >= 3);
  assert.ok((await tries()) < 10);
  const missing = new EngineProcess({ ...place(dataFolder), command: ['/no/such/program'], logger });
  await missing.stop();
});
