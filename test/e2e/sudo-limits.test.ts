import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { BUSYBOX } from '../engine/start-engine.ts';
import { SVC, SupervisedServer } from './supervised-server.ts';

const exec = promisify(execFile);
/** What sudo and limits.conf leave (`* hard core 0`, few open files), and no capability to raise it again. */
const LIMITED = [
  '--core=0:0',
  '--nofile=1024:4096',
  '--memlock=65536:65536',
  'setpriv',
  '--bounding-set',
  '-sys_resource',
  '--inh-caps',
  '-sys_resource',
];
const USER = { name: 'newcomer', id: 54_321 };

for (const isolation of ['container', 'gvisor']) {
  test(`a server starts as through sudo, with limits that it may not raise, and runs a sandbox: ${isolation}`, async (t) => {
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
    const home = await homeOfUser(t);
    const asSudo = [...LIMITED, '--', 'sh', '-c', 'umask 077; exec "$@"', 'sh'];
    await exec('prlimit', [...asSudo, SVC, '--path', place.folder, ...words], { env: sudoEnvironment(home) });
    await place.untilHealthy();
    await place.importBusybox();
    const started = await place.call('sandbox.start', { sandbox: 'plain', config: { image: BUSYBOX } });
    assert.equal(started.error, undefined);
    const command = { sandbox: 'plain', command: 'echo', args: ['here'] };
    assert.partialDeepStrictEqual((await place.call('sandbox.command.run', command)).result, {
      output: 'here\n',
    });
    assert.deepEqual(await readdir(home), [], 'root left files in the home of the user');
  });
}

/** A folder of a user who typed sudo: it stays HOME where sudoers keeps it. */
async function homeOfUser(t: TestContext): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-home-'));
  t.after(() => rm(home, { recursive: true }));
  await chown(home, USER.id, USER.id);
  return home;
}

/** All that sudo passes on: its secure_path, and who called. */
function sudoEnvironment(home: string) {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: home,
    TERM: 'xterm',
    LANG: 'C.UTF-8',
    MAIL: '/var/mail/root',
    LOGNAME: 'root',
    USER: 'root',
    SUDO_COMMAND: SVC,
    SUDO_USER: USER.name,
    SUDO_UID: String(USER.id),
    SUDO_GID: String(USER.id),
    SUDO_HOME: home,
  };
}
