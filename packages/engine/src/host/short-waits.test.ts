import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ShortWaits } from './short-waits.ts';

test('waits are short while somebody holds them so, and as before afterwards', (t) => {
  const host = makeHost(t, { rcu_expedited: '0\n', rcu_normal: '0\n' });
  const waits = host.open();
  const [one, other] = [waits?.hold(), waits?.hold()];
  assert.equal(host.setting(), '1');
  one?.[Symbol.dispose]();
  assert.equal(host.setting(), '1');
  other?.[Symbol.dispose]();
  assert.equal(host.setting(), '0');
  waits?.close();
  assert.ok(!existsSync(host.mark));
});

test('what an engine left short that was killed is long again with the next one, and when that stops', (t) => {
  const host = makeHost(t, { rcu_expedited: '0\n', rcu_normal: '0\n' });
  host.open()?.hold();
  assert.equal(host.setting(), '1');
  const next = host.open();
  assert.equal(host.setting(), '0');
  next?.hold();
  next?.close();
  assert.equal(host.setting(), '0');
});

test('what somebody else holds short stays so, and is not ours to end', (t) => {
  const host = makeHost(t, { rcu_expedited: '1\n', rcu_normal: '0\n' });
  const waits = host.open();
  waits?.hold()[Symbol.dispose]();
  waits?.close();
  assert.equal(host.setting(), '1');
  writeFileSync(host.file, '0\n');
  const later = waits?.hold();
  assert.equal(host.setting(), '1', 'once it has ended, it is');
  later?.[Symbol.dispose]();
  assert.equal(host.setting(), '0');
});

test('a kernel that is not to interrupt its CPUs, or has no such setting, is left alone', (t) => {
  assert.equal(makeHost(t, { rcu_expedited: '0\n', rcu_normal: '1\n' }).open(), null);
  assert.equal(makeHost(t, {}).open(), null);
});

test('without room for the mark waits stay long', (t) => {
  const host = makeHost(t, { rcu_expedited: '0\n', rcu_normal: '0\n' });
  using _ = ShortWaits.open(join(host.mark, 'not-a-folder'), dirname(host.file))?.hold();
  assert.equal(host.setting(), '0');
});

test('this host lets us choose, and the kernel takes it', (t) => {
  const waits = ShortWaits.open(makeHost(t, {}).mark);
  // Engines of other tests begin and end starts at any time.
  const taken = Array.from({ length: 20 }, () => {
    using _ = waits?.hold();
    return readFileSync('/sys/kernel/rcu_expedited', 'latin1');
  });
  waits?.close();
  assert.ok(taken.includes('1\n'), `${taken.join()}; ${readFileSync('/sys/kernel/rcu_normal', 'latin1')}`);
});

function makeHost(t: TestContext, files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-waits-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const [mark, file] = [join(folder, 'mark'), join(folder, 'rcu_expedited')];
  return {
    mark,
    file,
    open: () => ShortWaits.open(mark, folder),
    setting: () => readFileSync(file, 'latin1').trim(),
  };
}
