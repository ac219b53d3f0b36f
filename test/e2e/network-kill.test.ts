import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { startWeb, WITH_CURL, type Web } from './web-fixture.ts';

const [P, Q] = ['p.public.example', 'q.public.example'];

const undo = new AsyncDisposableStack();
let web: Web;
let client: Client;
let policies: readonly [Policy, Policy];
before(async () => {
  web = await startWeb(undo);
  policies = [policyOf(Q, null), policyOf(P, 8080)];
  client = new Client({ apiUrl: web.server.url });
});
after(() => undo.disposeAsync());

type Policy = NonNullable<Parameters<Sandbox['network']['update']>[0]['policy']>;
type Rule = NonNullable<Policy['rules']>[number];

/**
 * Denies a name, which concerns resolver and proxy, and with `port` a port, which the packet filter decides. The port is looked at on an
 * address that no name leads to: what a name was found to lead to is denied with it, for longer than a test should wait.
 */
function policyOf(name: string, port: number | null): Policy {
  const rule = (
    action: 'allow' | 'deny',
    destination: Rule['destination'],
    more: Partial<Rule> = {},
  ): Rule => ({
    direction: 'egress',
    action,
    destination,
    ...more,
  });
  const closed = port === null ? [] : [rule('deny', 'any', { ports: [{ start: port, end: port }] })];
  const unnamed = { cidr: web.internet.privateAddress };
  const open = [rule('allow', { group: 'host' }), rule('allow', { group: 'public' }), rule('allow', unnamed)];
  return { rules: [rule('deny', { domain: name }), ...closed, ...open] };
}

/** What the sandbox can do, as one line: `port 8080 open, q denied by name, q denied by greeting`. */
async function seen(sandbox: Sandbox): Promise<string> {
  const { publicAddress, privateAddress } = web.internet;
  const succeeds = async (script: string) => {
    const { code } = await sandbox.shell(script);
    return code === 0;
  };
  const port = await succeeds(`timeout 5 nc ${privateAddress} 8080 < /dev/null | grep -q 'you are'`);
  const words = [`port 8080 ${port ? 'open' : 'closed'}`];
  for (const name of [P, Q]) {
    const isAnswered = await succeeds(`nslookup ${name}`);
    const isCarried = await succeeds(
      `curl -sSk -m 10 -o /dev/null --resolve ${name}:443:${publicAddress} https://${name}/`,
    );
    words.push(`${name} ${isAnswered ? 'answered' : 'denied'} and ${isCarried ? 'carried' : 'denied'}`);
  }
  return words.join(', ');
}

const AS_WANTED: readonly string[] = [
  `port 8080 open, ${P} answered and carried, ${Q} denied and denied`,
  `port 8080 closed, ${P} denied and denied, ${Q} answered and carried`,
];

/** Which of the policies the server has written down. */
async function recorded(sandbox: Sandbox): Promise<number> {
  const { spec } = await client.call('sandboxes.get', { params: { sandbox_id: sandbox.id } });
  const text = JSON.stringify(spec?.network.policy?.rules?.[0]?.destination);
  return policies.findIndex(({ rules = [] }) => JSON.stringify(rules[0]?.destination) === text);
}

test('kill -9 of engine or server at any moment of a change leaves record, filter, resolver and proxy in agreement', async () => {
  let sandbox = await Sandbox.create({
    client,
    name: 'killed',
    image: WITH_CURL,
    isolation: 'container',
    network: { policy: policies[0] },
  });
  let next = 1;
  for (const [whom, afterMs] of [
    ['engine', 0],
    ['engine', 40],
    ['engine', 150],
    ['server', 0],
    ['server', 60],
  ] as const) {
    const abort = new AbortController();
    const options = { timeoutMs: 60_000, signal: abort.signal };
    const changing = sandbox.network.update({ policy: policies[next] as Policy }, options).then(
      () => 'changed',
      () => 'unknown',
    );
    await delay(afterMs);
    const killed = whom === 'engine' ? web.server.engine : web.server;
    await killed.kill();
    // The next server listens elsewhere.
    if (whom === 'server') abort.abort();
    await killed.launch();
    client = new Client({ apiUrl: web.server.url });
    const outcome = await changing;
    sandbox = await Sandbox.connect('killed', { client });
    const wanted = await recorded(sandbox);
    if (outcome === 'changed') assert.equal(wanted, next, 'what was said to be done is done');
    let last = '';
    await waitUntil(async () => (last = await seen(sandbox).catch(String)) === AS_WANTED[wanted], {
      timeoutMs: 120_000,
      what: `${whom} after ${afterMs} ms: ${AS_WANTED[wanted]}`,
    }).catch((error: unknown) => {
      throw new Error(`it is: ${last}`, { cause: error });
    });
    const { spec } = await web.server.engine.client.getSandbox(sandbox.id);
    assert.deepEqual(spec.network?.policy, policies[wanted], 'the engine has written down the same');
    next = 1 - wanted;
  }
  await sandbox.remove();
});
