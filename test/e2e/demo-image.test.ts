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

for (const isolation of CLASSES) {
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
