import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueryClient } from '@tanstack/react-query';
import { changeShown } from './change-shown.ts';

const KEYS = {
  one: ['call', 'acme', 'sandboxes.get', {}],
  pages: ['call', 'acme', 'sandboxes.list', {}, 'pages'],
  other: ['call', 'acme', 'volumes.list', {}],
} as const;

test('an item is shown otherwise in every answer that has it, nowhere else, and as before when that is undone', () => {
  const cache = new QueryClient();
  const show = (status: string) => ({
    one: { id: 'a', status },
    pages: {
      pages: [
        {
          data: [
            { id: 'a', status },
            { id: 'b', status: 'running' },
          ],
          next_cursor: null,
        },
      ],
    },
    other: { data: [{ id: 'a', status: 'running' }] },
  });
  const shown = () =>
    Object.fromEntries(Object.entries(KEYS).map(([name, key]) => [name, cache.getQueryData(key)]));
  for (const [name, key] of Object.entries(KEYS))
    cache.setQueryData(key, show('running')[name as keyof typeof KEYS]);
  const names = ['sandboxes.get', 'sandboxes.list'] as const;
  const undo = changeShown(cache, names, { id: 'a' }, { status: 'stopping' });
  assert.deepEqual(shown(), show('stopping'));
  undo();
  assert.deepEqual(shown(), show('running'));
});
