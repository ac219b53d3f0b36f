import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';

const cli = useCli(undefined, { args: ['--dev'] });

test('in development mode the command line reaches what was made in any namespace', async () => {
  const { svc } = cli;
  const config = { image: BUSYBOX };
  const { error } = await svc.server.call('sandbox.start', { sandbox: 'box', namespace: 'team', config });
  assert.equal(error, undefined);
  assert.equal(await svc.succeed(['ps', '-q']), '');
  assert.equal(await svc.succeed(['ps', '-q', '--org', 'team']), 'box\n');
  assert.match(await svc.succeed(['ps', '--all-orgs']), /^ORGANIZATION +NAME[^]*\nteam +box /);
  assert.equal(await svc.succeed(['exec', '--org', 'team', 'box', '--', 'echo', 'hi']), 'hi\n');
  await svc.succeed(['--org', 'team', 'rm', '-f', 'box']);
  assert.equal(await svc.succeed(['ps', '-aqA']), '');
});
