import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { pino } from 'pino';
import { freePort } from '../testing/free-port.ts';
import { ingressOf } from './ingress.ts';
import { PortForwarder } from './port-forwarder.ts';

test('without a policy every connection is allowed, with an empty policy none', () => {
  assert.equal(ingressOf(undefined)('198.51.100.7', 80, 'tcp'), true);
  assert.equal(ingressOf({ policy: {} })('127.0.0.1', 80, 'tcp'), false);
});

test('rules about ingress look at who comes, at the port inside and at the protocol', () => {
  const mayEnter = ingressOf({
    policy: {
      rules: [
        { direction: 'egress', action: 'allow', destination: 'any' },
        { direction: 'ingress', action: 'deny', destination: { cidr: '10.1.0.0/16' } },
        {
          direction: 'any',
          action: 'allow',
          destination: { group: 'private' },
          ports: [{ start: 80, end: 80 }],
          protocols: ['tcp'],
        },
        { direction: 'ingress', action: 'allow', destination: { group: 'loopback' } },
      ],
    },
  });
  assert.equal(mayEnter('10.2.0.1', 80, 'tcp'), true);
  assert.equal(mayEnter('::ffff:10.2.0.1', 80, 'tcp'), true);
  assert.equal(mayEnter('10.1.0.1', 80, 'tcp'), false);
  assert.equal(mayEnter('10.2.0.1', 81, 'tcp'), false);
  assert.equal(mayEnter('10.2.0.1', 80, 'udp'), false);
  assert.equal(mayEnter('127.0.0.1', 81, 'udp'), true);
  assert.equal(mayEnter('93.184.215.14', 80, 'tcp'), false);
  assert.equal(mayEnter('', 80, 'tcp'), false);
});

test('a policy that changes holds for the next who comes to a port that is open', async (t) => {
  let letIn = 0;
  const forwarder = new PortForwarder(
    () => {
      letIn += 1;
      return Promise.reject(new Error('nothing listens inside'));
    },
    pino({ level: 'silent' }),
  );
  t.after(() => forwarder.closeAll());
  const port = await freePort('tcp');
  const come = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    await new Promise((closed) => socket.once('close', closed));
    return letIn;
  };
  const mappings = [{ host: port, guest: 80 }];
  await forwarder.open('box', mappings, () => false);
  assert.equal(await come(), 0);
  await forwarder.open('box', mappings, () => true);
  assert.equal(await come(), 1);
  await forwarder.open('box', mappings, () => false);
  assert.equal(await come(), 1);
});
