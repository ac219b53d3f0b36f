import assert from 'node:assert/strict';
import { claim, type Claim } from '../claim.ts';
import { FULL, fullBox } from './full-box.ts';
import { plainBox } from './record.ts';

export const runtimeClaims: readonly Claim[] = [
  claim(
    'spec.runtime.cmd',
    'Runs behind the entrypoint as the main process; without it none runs',
    'a file that the main process wrote, with its last word',
    async (ground) => {
      const box = await fullBox(ground);
      assert.deepEqual(box.spec.runtime.cmd, FULL.runtime.cmd);
      await ground.wait(
        async () => (await ground.sh(box, 'cat /tmp/main')).output === 'main argument\n',
        'the main process ran',
      );
      assert.equal(await ground.seen(await plainBox(ground), 'ps | grep -c "[s]leep" || true'), '0');
    },
    { default: 'none' },
  ),
  claim(
    'spec.runtime.entrypoint',
    'What the command is handed to',
    'the shell of the entrypoint took the first word of the command as its script',
    async (ground) => {
      const box = await fullBox(ground);
      assert.deepEqual(box.spec.runtime.entrypoint, FULL.runtime.entrypoint);
      await ground.wait(
        async () => (await ground.sh(box, 'cat /tmp/main')).exit_code === 0,
        'the main process ran',
      );
    },
    { default: 'that of the image' },
  ),
  claim(
    'spec.runtime.hostname',
    'The name of the machine that processes see',
    '`hostname` and `/etc/hosts` inside',
    async (ground) => {
      const box = await fullBox(ground);
      assert.equal(box.spec.runtime.hostname, 'my-host');
      assert.equal(
        await ground.seen(box, 'hostname; cat /etc/hostname; grep -c my-host /etc/hosts'),
        'my-host\nmy-host\n1',
      );
    },
  ),
  claim(
    'spec.runtime.scripts',
    'Programs by name, on the path of every process',
    'one is run by its name, and cannot be changed',
    async (ground) => {
      const box = await fullBox(ground);
      assert.deepEqual(box.spec.runtime.scripts, FULL.runtime.scripts);
      assert.equal(await ground.seen(box, 'greet you'), 'hello you');
      assert.notEqual((await ground.sh(box, 'echo x > /.svc/scripts/greet')).exit_code, 0);
    },
    { default: 'none' },
  ),
  claim(
    'spec.runtime.shell',
    'The shell of the sandbox',
    '`SHELL` inside',
    async (ground) => {
      const box = await fullBox(ground);
      assert.equal(box.spec.runtime.shell, '/bin/ash');
      assert.equal(await ground.seen(box, 'echo $SHELL'), '/bin/ash');
    },
    { default: '`/bin/sh`' },
  ),
  claim(
    'spec.runtime.user',
    'Who runs processes: a name or number, with a group behind a colon',
    '`id` inside, with what was asked for and without',
    async (ground) => {
      const box = await fullBox(ground);
      assert.equal(box.spec.runtime.user, 'user');
      assert.equal(await ground.seen(box, 'id -u; id -g'), '1000\n1000');
      assert.equal(await ground.seen(await plainBox(ground), 'id -u'), '0');
    },
    { default: 'that of the image, else root' },
  ),
  claim(
    'spec.runtime.workdir',
    'Where processes start',
    '`pwd` inside, with what was asked for and without',
    async (ground) => {
      const box = await fullBox(ground);
      assert.equal(box.spec.runtime.workdir, '/home/user');
      assert.equal(await ground.seen(box, 'pwd'), '/home/user');
      assert.equal(await ground.seen(await plainBox(ground), 'pwd'), '/');
    },
    { default: 'that of the image, else `/`' },
  ),
];
