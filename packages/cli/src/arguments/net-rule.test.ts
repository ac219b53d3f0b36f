import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgumentError } from 'commander';
import { DEFAULT_POLICY } from '@svc/contract/spec';
import { parseNetProfile, profileOf, toPolicy } from './net-profile.ts';
import { collectNetRules } from './net-rule.ts';

const egress = { direction: 'egress', action: 'allow' };

test('every target has its form', () => {
  const targets = {
    any: 'any',
    public: { group: 'public' },
    meta: { group: 'metadata' },
    'link-local': { group: 'link_local' },
    'domain=example.com': { domain: 'example.com' },
    'suffix=example.com': { domain_suffix: 'example.com' },
    '10.0.0.0/8': { cidr: '10.0.0.0/8' },
    '192.0.2.1': { cidr: '192.0.2.1' },
    '[2001:db8::/32]': { cidr: '2001:db8::/32' },
  };
  for (const [text, destination] of Object.entries(targets))
    assert.deepEqual(collectNetRules(`allow@${text}`), [{ ...egress, destination }], text);
});

test('direction, protocols and ports are optional; commas and repetition add rules', () => {
  const first = collectNetRules('deny:any@[::1]:tcp+udp:53+8000-8999,allow@dns');
  assert.deepEqual(first, [
    {
      direction: 'any',
      action: 'deny',
      destination: { cidr: '::1' },
      protocols: ['tcp', 'udp'],
      ports: [
        { start: 53, end: 53 },
        { start: 8000, end: 8999 },
      ],
    },
    {
      ...egress,
      destination: { group: 'host' },
      protocols: ['udp', 'tcp'],
      ports: [{ start: 53, end: 53 }],
    },
  ]);
  assert.equal(collectNetRules('allow:ingress@any:icmp', first).length, 3);
  assert.deepEqual(collectNetRules('allow@any:any:443'), [
    { ...egress, destination: 'any', ports: [{ start: 443, end: 443 }] },
  ]);
});

test('an error names the malformed rule and the remedy', () => {
  for (const [text, reason] of [
    ['allow', /write ACTION/],
    ['', /write ACTION/],
    ['permit@any', /'permit' is not allow or deny/],
    ['allow:out@any', /'out' is not egress/],
    ['allow@example.com', /write domain=example\.com/],
    ['allow@nowhere', /is no target; there are any/],
    ['allow@suffix=com', /two labels/],
    ['allow@domain=*.example.com', /no \* is needed/],
    ['allow@any:sctp', /'sctp' is no protocol/],
    ['allow@any:tcp:0', /is no port/],
    ['allow@any:tcp:9-8', /is no port/],
    ['allow@any:tcp:65536', /is no port/],
    ['allow@any:icmp:1', /ICMP has no ports/],
    ['allow@dns:tcp', /leave the rest out/],
    ['allow@2001:db8::1', /write ACTION|is no target/],
    ['allow@any,', /write ACTION/],
  ] as const)
    assert.throws(
      () => collectNetRules(text),
      (error) => error instanceof InvalidArgumentError && reason.test(error.message),
      text,
    );
});

test('the profile public is the default policy; profiles compose in their order; rules come first', () => {
  const { default_egress, default_ingress, rules } = DEFAULT_POLICY;
  const plain = rules.map(({ protocols, ports, ...rule }) =>
    ports.length === 0 ? rule : { ...rule, protocols, ports },
  );
  assert.deepEqual(parseNetProfile('public'), { default_egress, default_ingress, rules: plain });
  const groups = parseNetProfile('host,public').rules?.map(({ destination }) => destination);
  assert.deepEqual(groups, [{ group: 'host' }, { group: 'public' }, { group: 'host' }]);
  assert.deepEqual(parseNetProfile('none'), { default_egress: 'deny', default_ingress: 'deny', rules: [] });
  assert.equal(parseNetProfile('all').default_egress, 'allow');
  for (const text of ['', 'some', 'none,public', 'public,']) assert.throws(() => parseNetProfile(text), text);
  const added = toPolicy(undefined, collectNetRules('deny@10.0.0.0/8'));
  assert.deepEqual([added?.rules?.length, added?.rules?.[0]?.action], [3, 'deny']);
  assert.equal(toPolicy(undefined, undefined), undefined);
});

test('the profile of a policy is what stands behind its rules, whichever profile it is', () => {
  const rules = collectNetRules('allow@dns,allow@public,deny@10.0.0.0/8,allow@host');
  for (const text of [
    'none',
    'all',
    'public',
    'private',
    'host',
    'public,private',
    'public,host',
    'private,host',
    'public,private,host',
  ]) {
    const profile = parseNetProfile(text);
    assert.deepEqual(profileOf(profile), profile, text);
    assert.deepEqual(profileOf(toPolicy(profile, rules) ?? {}), profile, text);
  }
  const own = { default_egress: 'deny', default_ingress: 'allow', rules: [...rules] } as const;
  assert.deepEqual(profileOf({ ...own, rules: [...rules] }), { ...own, rules: [] });
});
