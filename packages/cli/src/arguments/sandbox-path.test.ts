import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePlace } from './sandbox-path.ts';

test('NAME:/path is in a sandbox, - is a stream, everything else is here', () => {
  assert.deepEqual(parsePlace('web:/a:b'), { kind: 'remote', name: 'web', path: '/a:b' });
  assert.deepEqual(parsePlace('-'), { kind: 'stream' });
  for (const path of ['a', './web:/a', '/web:/a', '../web:a', 'folder/web:/a'])
    assert.deepEqual(parsePlace(path), { kind: 'local', path });
});

test('a relative path in a sandbox is refused with the absolute one', () => {
  assert.throws(() => parsePlace('web:a'), /try: web:\/a/);
});
