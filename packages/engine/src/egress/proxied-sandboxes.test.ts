import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { cidr, parseAddress } from '../policy/address.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { ProxiedSandboxes, type ProxySettings } from './proxied-sandboxes.ts';
import { rulesOf, type PolicySource } from './proxy/policy-rules.ts';
import { TransparentProxy } from './proxy/transparent-proxy.ts';
import { secret, PLACEHOLDER } from '../testing/https-world.ts';
import { exchangeTcp, listenTcp } from '../testing/proxy-loopback.ts';
import { makeAuthority } from './tls/installation-authority.ts';
import { DecisionReports } from './decision-reports.ts';

const PINNED = '192.0.2.7';
const allow = (destination: object) => ({ action: 'allow', direction: 'egress', destination }) as const;

test('the name of a connection counts when the sandbox resolved it to the address', () => {
  const rules = rulesOf(sourceFor([allow({ domain: 'api.test' })]), 'client');
  const at = (address: string, said?: string) => rules.decide({ address, port: 443 }, said).action;
  assert.equal(at(PINNED, 'api.test'), 'allow');
  assert.equal(at(PINNED, 'other.test'), 'deny', 'domain fronting');
  assert.equal(at(PINNED, ''), 'deny', 'it should have said a name');
  assert.equal(at(PINNED), 'allow', 'what has no names is judged by those that led there');
  assert.equal(at('192.0.2.8', 'api.test'), 'deny', 'it was led elsewhere');
  assert.equal(at('not an address', 'api.test'), 'deny');
  assert.equal(rules.decide({ address: PINNED, port: 443 }, 'api.test').isByName, true);
  assert.deepEqual(
    [rules.isPinned('API.test', PINNED), rules.isPinned('api.test', '192.0.2.8')],
    [true, false],
  );
});

test('repeated violations are reported at most ten times a second', async (t) => {
  const server = await listenTcp(() => undefined);
  t.after(() => server[Symbol.asyncDispose]());
  const sent: NetworkReport[] = [];
  const sandboxes = new ProxiedSandboxes({
    policies: sourceFor([allow({ cidr: '127.0.0.0/8' })]),
    reports: new DecisionReports((_, report) => sent.push(report)),
  });
  sandboxes.set('127.0.0.1', settingsFor(server.port));
  const proxy = new TransparentProxy({
    find: (client) => sandboxes.find(client),
    onRefusal: (refusal) => sandboxes.refused(refusal),
  });
  const front = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) =>
    proxy.accept(socket, { address: '127.0.0.1', port: server.port }),
  );
  front.listen(0, '127.0.0.1');
  t.after(() => front.close());
  await once(front, 'listening');
  const { port } = front.address() as AddressInfo;
  const request = `GET / HTTP/1.1\r\nHost: elsewhere.test\r\nX: ${PLACEHOLDER}\r\n\r\n`;
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, () => exchangeTcp(port, request, { end: false })),
  );
  assert.deepEqual([...new Set(outcomes)], ['ECONNRESET']);
  const decisions = sent.flatMap(({ decisions }) => decisions.map(({ decision }) => decision));
  assert.ok(decisions.length >= 10 && decisions.length < 40, `${decisions.length} of 40`);
  assert.deepEqual(decisions[0], {
    kind: 'http',
    verdict: 'deny',
    host: 'elsewhere.test',
    address: '127.0.0.1',
    port: server.port,
    protocol: 'tcp',
    decidedBy: 'secret',
    rule: null,
    secret: { action: 'block_and_log', method: 'GET', path: '/', envVars: ['API_KEY'] },
  });
  assert.equal(server.received(), '');
  sandboxes.set('127.0.0.1', null);
  assert.equal(
    await exchangeTcp(port, 'hello', { end: false }),
    'ECONNRESET',
    'an unknown sandbox is refused',
  );
});

function settingsFor(port: number): ProxySettings {
  return {
    maxConnections: 256,
    interceptedPorts: [port],
    blockQuic: true,
    readsPlainHttp: false,
    bypass: [],
    authority: makeAuthority(),
    cache: { capacity: 10, validityHours: 1 },
    trust: { verifyUpstream: true, scopedVerifyUpstream: [], upstreamCas: [], scopedUpstreamCas: [] },
    secrets: { entries: [secret()], onViolation: { type: 'block_and_log' } },
  };
}

function sourceFor(rules: readonly ReturnType<typeof allow>[]): PolicySource {
  const policy = resolvePolicy({ policy: { rules: rules as never } });
  const gateway = parseAddress('172.30.0.1');
  assert.ok(gateway);
  return {
    hostNetworks: { gateway, hostAddresses: [], neighbours: [], pool: cidr('172.30.0.0/16') },
    policyOf: () => policy,
    namesOf: (_, address) => (address.value === parseAddress(PINNED)?.value ? ['Api.Test.'] : []),
  };
}
