import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { CLAIMS } from './claims/sections.ts';
import { KINDS, type Claim } from './claim.ts';
import { readLeaves } from './leaves.ts';
import { PENDING_CLAIMS } from './pending-claims.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const rows = [...CLAIMS, ...PENDING_CLAIMS];
const leaves = await readLeaves();
const namesOf = ({ id, covers }: Claim) => [id, ...covers];

test('the schemas and the command line are walked', () => {
  const ids = leaves.map(({ id }) => id);
  assert.ok(ids.length > 400, `${ids.length} leaves`);
  for (const id of [
    'sandbox.status=running',
    'spec.resources.memory_mib',
    'spec.mounts.options.readonly',
    'create.patches.content',
    'sandbox.start.params.config.memory',
    'error.sandbox_not_found',
    'mcp.tool.sandbox_start',
    'svc server keygen --expire',
  ])
    assert.ok(ids.includes(id), id);
});

test('every field, value, code, tool and flag has a row that proves it', () => {
  const named = new Set(rows.flatMap(namesOf));
  const missing = leaves.map(({ id }) => id).filter((id) => !named.has(id));
  assert.deepEqual(missing, []);
});

test('every row is about something that exists, or of a kind that no schema holds', () => {
  const known = new Set(leaves.map(({ id }) => id));
  const isOfKind = (id: string) => KINDS.some((kind) => id.startsWith(`${kind}.`));
  const unknown = rows.flatMap(namesOf).filter((id) => !known.has(id) && !isOfKind(id));
  assert.deepEqual(unknown, []);
});

test('nothing has two rows', () => {
  const named = rows.flatMap(namesOf);
  assert.deepEqual(
    named.filter((id, index) => named.indexOf(id) !== index),
    [],
  );
});

test('a row says what holds and how that is seen, for people', () => {
  const silent = rows.filter(({ says, how }) => !/^[A-Z`].*[^.]$/.test(says) || how === '');
  assert.deepEqual(
    silent.map(({ id }) => id),
    [],
  );
});

test('tests that rows refer to exist', () => {
  const broken = rows.flatMap(({ id, proof }) => {
    if (typeof proof === 'function') return [];
    const path = resolve(ROOT, proof.file);
    const titles = existsSync(path) ? titlesIn(readFileSync(path, 'utf8')) : [];
    return titles.includes(proof.title) ? [] : [`${id}: ${proof.file}: ${proof.title}`];
  });
  assert.deepEqual(broken, []);
});

/** Of the tests of a file, as they are written. */
function titlesIn(text: string): readonly string[] {
  return [...text.matchAll(/\btest(?:Once)?\(\s*(['"`])(.*?)\1,/g)].map(([, , title = '']) => title);
}
