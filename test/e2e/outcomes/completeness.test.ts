import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathsOf, REST_OPERATIONS, type RestOperation, type RestOperationName } from '@svc/contract/rest';
import { EXCLUDED_OUTCOMES } from './excluded-outcomes.ts';
import { Outcomes, type OutcomeName } from './outcomes.ts';

// The entries of the table have its names.
const TABLE = Object.entries(REST_OPERATIONS) as [RestOperationName, RestOperation][];

/** One line per outcome of an address. */
function spell(name: RestOperationName, audience: string, outcome: OutcomeName): string {
  const { method, path } = { ...REST_OPERATIONS[name], path: addressOf(name, audience) };
  return `${method} /v1${path} → ${outcome} (${name})`;
}

function addressOf(name: RestOperationName, audience: string): string {
  return pathsOf(REST_OPERATIONS[name]).find((address) => address.audience === audience)?.path ?? '';
}

function spellAll(name: RestOperationName, outcome: OutcomeName, only?: string): readonly string[] {
  return pathsOf(REST_OPERATIONS[name])
    .filter(({ audience }) => only === undefined || only === audience)
    .map(({ audience }) => spell(name, audience, outcome));
}

async function readDeclared(): Promise<ReadonlySet<string>> {
  const files = globSync('*.ts', { cwd: import.meta.dirname }).filter((file) => !file.endsWith('.test.ts'));
  const modules = await Promise.all(
    files.map(async (file) => (await import(join(import.meta.dirname, file))) as Record<string, unknown>),
  );
  const groups = modules.flatMap((module) => Object.entries(module)).filter(isGroup);
  const tests = globSync('*.test.ts', { cwd: import.meta.dirname });
  const texts = tests.map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'));
  const lists = texts.map((text) => /runOutcomes\(\s*\[([^\]]*)\]/.exec(text)?.[1] ?? '');
  const run = new Set(lists.flatMap((list) => list.split(',').map((word) => word.trim())));
  const notRun = groups.map(([name]) => name).filter((name) => !run.has(name));
  assert.deepEqual(notRun, [], 'declared and not run');
  return new Set(
    groups.flatMap(([, { all }]) =>
      all.flatMap(({ operation, outcome, only }) => spellAll(operation, outcome, only)),
    ),
  );
}

function isGroup(entry: [string, unknown]): entry is [string, Outcomes] {
  return entry[1] instanceof Outcomes;
}

test('each endpoint × each documented outcome is a test on the real engine, or says why not', async () => {
  const declared = await readDeclared();
  const required = TABLE.flatMap(([name, { errors }]) =>
    (['ok', ...errors] as const).flatMap((outcome) => spellAll(name, outcome)),
  );
  const excluded = new Set(
    EXCLUDED_OUTCOMES.flatMap(({ operations, outcome, only }) =>
      operations.flatMap((name) => spellAll(name, outcome, only)),
    ),
  );
  const missing = required.filter((each) => !declared.has(each) && !excluded.has(each));
  assert.deepEqual(missing, []);
  const needless = [...excluded].filter((each) => declared.has(each) || !required.includes(each));
  assert.deepEqual(needless, [], 'excluded without need');
});
