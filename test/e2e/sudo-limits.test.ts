import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { BUSYBOX } from '../engine/start-engine.ts';
import { SVC, SupervisedServer } from './supervised-server.ts';

const exec = promisify(execFile);
/** What sudo and `* hard core 0` in limits.conf leave, and no capability to raise it again. */
const LIMITED = ['--core=0:0', 'setpriv', '--bounding-set', '-sys_resource', '--inh-caps', '-sys_resource'];

for (const isolation of ['container', 'gvisor']) {
  test(`a server that may not raise its limit on core files starts, and runs a sandbox: ${isolation}`, async (t) => {
    const place = await SupervisedServer.prepare();
    t.after(() => place.clear());
    const words = [
      'server',
      'start',
      '--detach',
      '--dev',
      '--port',
      String(place.port),
      '--isolation',
      isolation,
    ];
    await exec('prlimit', [...LIMITED, '--', SVC, '--path', place.folder, ...words]);
    await place.untilHealthy();
    await place.importBusybox();
    const started = await place.call('sandbox.start', { sandbox: 'plain', config: { image: BUSYBOX } });
    assert.equal(started.error, undefined);
    const command = { sandbox: 'plain', command: 'echo', args: ['here'] };
    assert.partialDeepStrictEqual((await place.call('sandbox.command.run', command)).result, {
      output: 'here\n',
    });
  });
}
