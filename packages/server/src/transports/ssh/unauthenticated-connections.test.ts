import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnauthenticatedConnections } from './unauthenticated-connections.ts';

const LIMITS = { total: 100, unauthenticated: 8, unauthenticatedPerAddress: 4, newPerAddress: 1000 };

function open(limits = LIMITS) {
  const connections = new UnauthenticatedConnections(limits);
  const ended: string[] = [];
  const admit = (address: string, name = address) => connections.admit(address, () => ended.push(name));
  return { admit, ended };
}

test('a whole /64 of IPv6 counts as one address', () => {
  const { admit } = open();
  const admitted = Array.from({ length: 20 }, (_, host) => admit(`2001:db8:1:2::${host + 1}`));
  assert.equal(admitted.filter((entry) => entry !== undefined).length, LIMITS.unauthenticatedPerAddress);
  assert.ok(admit('2001:db8:1:3::1'), 'another network has its own limit');
});

test('at the limit, a new connection replaces the oldest of the address that has the most', () => {
  const { admit, ended } = open();
  for (const address of ['10.0.0.1', '10.0.0.2'])
    for (let turn = 0; turn < 4; turn++) admit(address, `${address} ${turn}`);
  assert.ok(admit('10.0.0.3'), 'the first is admitted');
  assert.ok(admit('10.0.0.4'), 'the second is admitted');
  assert.deepEqual(ended, ['10.0.0.1 0', '10.0.0.2 0']);
  // An address that has as many as the others replaces no connection.
  for (let turn = 0; turn < 4; turn++) admit('10.0.0.5');
  assert.equal(ended.filter((name) => name === '10.0.0.5').length, 0);
  assert.equal(ended.filter((name) => name === '10.0.0.3').length, 0);
});

test('a connection that is logged in is never replaced, and its place is free when it closes', () => {
  const { admit, ended } = open({ ...LIMITS, total: 2, unauthenticated: 2, unauthenticatedPerAddress: 2 });
  const [first, second] = [admit('10.0.0.1'), admit('10.0.0.1')];
  first?.loggedIn();
  second?.loggedIn();
  assert.equal(admit('10.0.0.2'), undefined, 'all connections are logged in');
  assert.deepEqual(ended, []);
  first?.gone();
  first?.gone();
  assert.ok(admit('10.0.0.2'));
  assert.equal(admit('10.0.0.2'), undefined, 'one has left, once');
});

test('too many new connections of one address are refused', () => {
  const { admit } = open({ ...LIMITS, newPerAddress: 10 });
  const visit = (address: string) => {
    const entry = admit(address);
    entry?.gone();
    return entry !== undefined;
  };
  const visits = Array.from({ length: 20 }, () => visit('10.0.0.1'));
  assert.equal(visits.filter(Boolean).length, 10);
  assert.ok(visit('10.0.0.2'), 'another address is admitted');
});
