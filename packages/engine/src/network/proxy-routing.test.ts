import assert from 'node:assert/strict';
import { test } from 'node:test';
import { command } from '../testing/command.ts';
import { TestEngine } from '../testing/test-engine.ts';
import { proxyMark } from './proxy-routing.ts';

test('one rule and one route lead to the proxy, after any number of engine starts, and are removed with the last engine', async () => {
  await using engine = await TestEngine.make(96);
  const mark = `0x${proxyMark(engine.options.instance).toString(16)}`;
  const rules = async () =>
    (await command('ip', '-4', 'rule', 'list')).split('\n').filter((line) => line.includes(mark));
  const others = async () =>
    (await command('ip', '-4', 'rule', 'list'))
      .split('\n')
      .filter((line) => /lookup (main|default)/.test(line));
  const before = await others();
  const first = engine.open();
  await first.recover([]);
  // As after a kill: the next engine finds what this one has left.
  await first.recover([]);
  assert.equal((await rules()).length, 1);
  const route = await command(
    'ip',
    '-4',
    'route',
    'list',
    'table',
    String(proxyMark(engine.options.instance)),
  );
  assert.match(route, /^local default dev lo/);
  await first.close();
  assert.deepEqual(await rules(), []);
  assert.deepEqual(await others(), before);
});
