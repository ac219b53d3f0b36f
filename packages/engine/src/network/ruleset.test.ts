import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCidr } from '../policy/address.ts';
import { GROUP_RANGES, RESERVED_RANGES } from '../policy/groups.ts';
import { ruleset } from './ruleset.ts';

test('the packet filter refuses every range that the policy takes for other than public', () => {
  const rules = ruleset({
    instance: 'test',
    pool: { cidr: '10.200.0.0/16', gateway: '10.200.0.1' },
    ipv6Pool: null,
    links: [],
    neighbours: [],
    ceiling: null,
    maxPackets: 1000,
    maxMib: null,
  });
  const refused = new Set(
    [...rules.matchAll(/^define not_public6? = \{([^}]*)\}/gm)].flatMap(([, list = '']) =>
      list.split(',').map((range) => range.trim()),
    ),
  );
  const ranges = [...Object.values(GROUP_RANGES).flat(), ...RESERVED_RANGES].map(formatCidr);
  assert.deepEqual(
    ranges.filter((range) => !refused.has(range)),
    [],
  );
});
