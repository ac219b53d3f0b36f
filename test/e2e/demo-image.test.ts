import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { addDemoImages } from './demo-images.ts';
import { TestServer } from './start-server.ts';

let server: TestServer;
let client: Client;
// Once for the whole file: its packages come from the mirror of this host.
before(async () => {
  server = await TestServer.start();
  await addDemoImages(server.engine, 'base');
  client = new Client({ apiUrl: server.url, maxRetries: 0 });
});
after(() => server.destroy());

const REMEDY =
  "sudo: no program gains privileges in a sandbox; start this command as the user root instead (svc exec --user root, E2B's clients: user 'root')\n";

for (const isolation of CLASSES) {
  test(`git, curl, ps, adduser and sudo work in the demo image on class ${isolation}`, async (t) => {
    const sandbox = await Sandbox.create({ client, name: `tools-${isolation}`, image: 'base', isolation });
    t.after(() => sandbox.remove());
    const run = async (user: string, script: string) => {
      const { code, stdout, stderr } = await sandbox.exec('sh', ['-c', script], { user });
      const [out, errors] = [stdout, stderr].map((bytes) => Buffer.from(bytes).toString());
      return { code, out, errors };
    };
    const done = (out: string) => ({ code: 0, out, errors: '' });
    assert.deepEqual(
      await run('user', 'id -un; id -u; cd; pwd; touch kept && ls'),
      done('user\n1000\n/home/user\nkept\n'),
    );
    const commit =
      'cd && git init -q here && cd here && git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m one && git log --format=%s';
    assert.deepEqual(await run('user', commit), done('one\n'));
    assert.deepEqual(await run('user', 'curl -sS file:///etc/host.conf'), done('multi on\n'));
    assert.deepEqual(await run('user', 'ps -o comm= -p $$'), done('sh\n'));
    const added = await run('root', "adduser --quiet --disabled-password --gecos '' more && id more");
    assert.deepEqual(
      [added.code, added.out],
      [0, 'uid=1001(more) gid=1001(more) groups=1001(more),100(users)\n'],
    );
    assert.deepEqual(await run('more', 'cd && pwd'), done('/home/more\n'));
    assert.deepEqual(await run('root', 'sudo -n id -u; sudo -n -u user id -un'), done('0\nuser\n'));
    assert.deepEqual(await run('user', 'sudo -n id -u'), { code: 1, out: '', errors: REMEDY });
  });

  for (const user of ['root', 'user']) {
    test(`ping works in the demo image, without raw sockets, for ${user} on class ${isolation}`, async (t) => {
      const name = `ping-${isolation}-${user}`;
      const sandbox = await Sandbox.create({ client, name, image: 'svc/base', isolation });
      t.after(() => sandbox.remove());
      const { code, stdout } = await sandbox.exec('ping', ['-c', '1', '127.0.0.1'], { user });
      assert.equal(code, 0);
      assert.match(Buffer.from(stdout).toString(), /1 received, 0% packet loss/);
    });
  }
}
