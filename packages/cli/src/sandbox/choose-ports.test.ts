import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError, type CreateOptions, type Sandbox } from '@svc/sdk';
import { collectPort } from '../arguments/port.ts';
import { withChosenPorts } from './choose-ports.ts';

const MADE = { info: { spec: {} } } as unknown as Sandbox;

function portsIn({ network }: CreateOptions): readonly number[] {
  return (network?.ports ?? []).map(({ host_port: port }) => port);
}

function isTaken(port: number | undefined): SvcError {
  return new SvcError('invalid_sandbox_config', 'in use', { details: { host_port: port } });
}

test('a port that was chosen and is taken is chosen again; one that was named stays', async () => {
  const tried: (readonly number[])[] = [];
  const published = collectPort('80', collectPort('8080:81'));
  await withChosenPorts({ image: 'x' }, published, (options) => {
    const ports = portsIn(options);
    tried.push(ports);
    return tried.length < 3 ? Promise.reject(isTaken(ports[1])) : Promise.resolve(MADE);
  });
  assert.deepEqual(
    tried.map(([named]) => named),
    [8080, 8080, 8080],
  );
  assert.ok(tried.every(([, chosen = 0]) => chosen >= 20_000 && chosen < 30_000));
  const refused = withChosenPorts({ image: 'x' }, published, () => Promise.reject(isTaken(8080)));
  await assert.rejects(refused, /in use/);
});

test('the search for a free port ends after some attempts', async () => {
  let tries = 0;
  const always = withChosenPorts({ image: 'x' }, collectPort('80'), (options) => {
    tries += 1;
    return Promise.reject(isTaken(portsIn(options)[0]));
  });
  await assert.rejects(always, /in use/);
  assert.equal(tries, 20);
});
