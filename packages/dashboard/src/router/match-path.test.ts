import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillPath, matchPath } from './match-path.ts';

test('a path gives what its pattern names, and nothing when it is another one', () => {
  const pattern = '/orgs/:slug/sandboxes/:id';
  assert.deepEqual(matchPath(pattern, '/orgs/acme/sandboxes/a%2Fb'), { slug: 'acme', id: 'a/b' });
  assert.equal(matchPath(pattern, '/orgs/acme/sandboxes'), undefined);
  assert.equal(matchPath(pattern, '/orgs/acme/sandboxes/a/files'), undefined);
  assert.equal(matchPath('/sign-in', '/sign-up'), undefined);
  assert.deepEqual(matchPath('/', '/'), {});
});

test('a star takes the rest, and what cannot be decoded is taken as it is', () => {
  assert.deepEqual(matchPath('/a/*', '/a/b/c%20d'), { '*': 'b/c d' });
  assert.deepEqual(matchPath('/a/:b', '/a/%zz'), { b: '%zz' });
});

test('a name in a path is written so that it is read again as it was', () => {
  const name = 'a/b ?#%';
  const path = fillPath('/orgs/:slug', { slug: name });
  assert.deepEqual(matchPath('/orgs/:slug', path), { slug: name });
});
