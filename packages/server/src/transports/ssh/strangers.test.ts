import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Strangers } from './strangers.ts';

const LIMITS = { total: 100, strangers: 8, strangersPerAddress: 4, newPerAddress: 1000 };

function open(limits = LIMITS) {
  const strangers = new Strangers(limits);
  const ended: string[] = [];
  const admit = (address: string, name = address) => strangers.admit(address, () => ended.push(name));
  return { admit, ended };
}

test('a whole /64 of IPv6 has the places of one address', () => {
  const { admit } = open();
  const admitted = Array.from({ length: 20 }, (_, host) => admit(`2001:db8:1:2::${host + 1}`));
  assert.equal(admitted.filter((place) => place !== undefined).length, LIMITS.strangersPerAddress);
  assert.ok(admit('2001:db8:1:3::1'), 'another network has its own');
});

test('whoever comes when all places are taken gets the oldest of whoever has the most', () => {
  const { admit, ended } = open();
  for (const address of ['10.0.0.1', '10.0.0.2'])
    for (let turn = 0; turn < 4; turn++) admit(address, `${address} ${turn}`);
  assert.ok(admit('10.0.0.3'), 'a newcomer is let in');
  assert.ok(admit('10.0.0.4'), 'and another one');
  assert.deepEqual(ended, ['10.0.0.1 0', '10.0.0.2 0']);
  // Who has as many as the others have pushes nobody out.
  for (let turn = 0; turn < 4; turn++) admit('10.0.0.5');
  assert.equal(ended.filter((name) => name === '10.0.0.5').length, 0);
  assert.equal(ended.filter((name) => name === '10.0.0.3').length, 0);
});

test('who is logged in is pushed out by nobody, and leaves a place to others', () => {
  const { admit, ended } = open({ ...LIMITS, total: 2, strangers: 2, strangersPerAddress: 2 });
  const [first, second] = [admit('10.0.0.1'), admit('10.0.0.1')];
  first?.loggedIn();
  second?.loggedIn();
  assert.equal(admit('10.0.0.2'), undefined, 'all connections are of people who are logged in');
  assert.deepEqual(ended, []);
  first?.gone();
  first?.gone();
  assert.ok(admit('10.0.0.2'));
  assert.equal(admit('10.0.0.2'), undefined, 'one has left, once');
});

test('an address that comes again and again is refused before it costs anything', () => {
  const { admit } = open({ ...LIMITS, newPerAddress: 10 });
  const visit = (address: string) => {
    const place = admit(address);
    place?.gone();
    return place !== undefined;
  };
  const visits = Array.from({ length: 20 }, () => visit('10.0.0.1'));
  assert.equal(visits.filter(Boolean).length, 10);
  assert.ok(visit('10.0.0.2'), 'others come as before');
});
