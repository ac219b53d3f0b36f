import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectPort, parsePort } from './port.ts';

test('a port is HOST:GUEST, with an address before it and a protocol behind it', () => {
  assert.deepEqual(collectPort('8080:80'), [{ guest_port: 80, host_port: 8080, protocol: 'tcp' }]);
  const earlier = collectPort('1:2');
  assert.deepEqual(collectPort('0.0.0.0:5353:53/udp', earlier), [
    ...earlier,
    { guest_port: 53, host_port: 5353, host_bind: '0.0.0.0', protocol: 'udp' },
  ]);
  assert.equal(collectPort('[::1]:1:2')[0]?.host_bind, '::1');
});

test('a port without one of the host takes any', () => {
  assert.deepEqual(collectPort('80'), [{ guest_port: 80, host_port: null, protocol: 'tcp' }]);
  assert.deepEqual(collectPort('53/udp'), [{ guest_port: 53, host_port: null, protocol: 'udp' }]);
  assert.deepEqual(collectPort('0.0.0.0::80'), [
    { guest_port: 80, host_port: null, host_bind: '0.0.0.0', protocol: 'tcp' },
  ]);
});

test('a port of a sandbox is a number that TCP has', () => {
  assert.equal(parsePort('3000'), 3000);
  for (const text of ['', '0', '65536', '-1', '8080:80', 'http'])
    assert.throws(() => parsePort(text), /65535/, text);
});

test('malformed ports are refused', () => {
  for (const text of ['', '0', '65536', ':', '0:80', '80:0', '80:65536', '80:80/icmp', 'a:b', '1:2:3:4'])
    assert.throws(() => collectPort(text), /HOST:GUEST/, text);
});
