import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectFilter, passesFilters } from './filter.ts';

const WEB = {
  id: '0d5f7c1e-0000-4000-8000-000000000000',
  name: 'web-1',
  status: 'failed',
  isolation: 'container',
  spec: { image: 'docker.io/library/python:latest', labels: { team: 'ml', marker: '' } },
} as unknown as Parameters<typeof passesFilters>[0];

function passes(...texts: readonly string[]): boolean {
  return passesFilters(
    WEB,
    texts.reduce<ReturnType<typeof collectFilter>>((earlier, text) => collectFilter(text, earlier), []),
  );
}

test('sandboxes are filtered by what docker filters by', () => {
  for (const text of [
    'name=web',
    'id=0d5f',
    'status=failed',
    'status=exited',
    'label=team=ml',
    'label=marker',
  ])
    assert.ok(passes(text), text);
  for (const text of ['image=python', 'ancestor=python:latest', 'isolation=container'])
    assert.ok(passes(text), text);
  for (const text of ['name=db', 'id=5f', 'status=running', 'label=team=ops', 'label=none', 'image=node'])
    assert.ok(!passes(text), text);
});

test('of one key any value will do, of labels and of several keys all must fit', () => {
  assert.ok(passes('status=running', 'status=failed'));
  assert.ok(!passes('status=failed', 'name=db'));
  assert.ok(!passes('label=team=ml', 'label=team=ops'));
});

test('an unknown filter is refused with the list of filters', () => {
  for (const text of ['', 'name', 'name=', 'colour=red', 'toString=1'])
    assert.throws(() => collectFilter(text), /name, id, status, label, image, isolation/, text);
  assert.throws(() => collectFilter('status=paused'), /running/);
});
