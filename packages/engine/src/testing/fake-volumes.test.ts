import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeVolumes } from './fake-volumes.ts';
import { volumesSuite } from '../volumes/volumes.suite.ts';

volumesSuite('fake', async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'svc-fake-volumes-'));
  const secret = join(scratch, 'secret');
  await writeFile(secret, 'secret');
  return {
    secret,
    open: () => new FakeVolumes(join(scratch, 'volumes')),
    [Symbol.asyncDispose]: () => rm(scratch, { recursive: true }),
  };
});
