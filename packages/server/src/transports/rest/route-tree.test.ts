import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RouteTree } from './route-tree.ts';

const PATHS = [
  '/sandboxes',
  '/sandboxes/{sandbox_id}',
  '/sandboxes/{sandbox_id}/logs',
  '/sandboxes/by-name/{name}',
  '/orgs/{slug}/sandboxes/{sandbox_id}',
] as const;

function createTree(): RouteTree<string> {
  const tree = new RouteTree<string>();
  for (const path of PATHS) tree.add(path, path);
  return tree;
}

test('an address is found with what stands in its placeholders', () => {
  const tree = createTree();
  assert.deepEqual(tree.find('/sandboxes'), { value: '/sandboxes', params: {} });
  assert.deepEqual(tree.find('/orgs/acme/sandboxes/7'), {
    value: '/orgs/{slug}/sandboxes/{sandbox_id}',
    params: { slug: 'acme', sandbox_id: '7' },
  });
});

test('a word wins over a placeholder, but only where it leads to an address', () => {
  const tree = createTree();
  assert.deepEqual(tree.find('/sandboxes/by-name/a'), {
    value: '/sandboxes/by-name/{name}',
    params: { name: 'a' },
  });
  assert.deepEqual(tree.find('/sandboxes/by-name'), {
    value: '/sandboxes/{sandbox_id}',
    params: { sandbox_id: 'by-name' },
  });
  // `by-name` is tried first and gives way; what was noted on the way is forgotten.
  tree.add('/sandboxes/by-name/{name}/{part}/deep', 'deep');
  tree.add('/sandboxes/{sandbox_id}/logs/{file}', 'file');
  assert.deepEqual(tree.find('/sandboxes/by-name/logs/b'), {
    value: 'file',
    params: { sandbox_id: 'by-name', file: 'b' },
  });
});

test('parts are decoded one by one, so a slash in a name splits nothing', () => {
  const tree = createTree();
  const { params } = tree.find('/sandboxes/by-name/a%2Fb%20%25') ?? {};
  assert.deepEqual(params, { name: 'a/b %' });
  assert.equal(tree.find('/%73andboxes')?.value, '/sandboxes');
});

test('an unknown path is not found', () => {
  const tree = createTree();
  for (const path of [
    '',
    '/',
    '//sandboxes',
    '/sandboxes/a/b',
    '/Sandboxes',
    '/__proto__',
    '/sandboxes/a/logs/',
  ]) {
    assert.equal(tree.find(path), undefined, path);
  }
});

test('a second value for a path joins the first', () => {
  const tree = new RouteTree<string[]>();
  tree.add('/volumes/{id}', ['GET']).push('HEAD');
  tree.add('/volumes/{volume_id}', ['PUT']).push('DELETE');
  assert.deepEqual(tree.find('/volumes/1'), { value: ['GET', 'HEAD', 'DELETE'], params: { id: '1' } });
});
