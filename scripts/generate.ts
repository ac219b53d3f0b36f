import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_STATUS, SandboxSpec } from '../packages/contract/src/index.ts';
import { ERROR_DESCRIPTIONS } from '../packages/contract/src/error-descriptions.ts';

/** Writes docs/reference from the code. With `--check` it writes nothing and fails when a file is not what the code says. */
const FOLDER = join(import.meta.dirname, '../docs/reference');

const documents: Readonly<Record<string, string>> = {
  'errors.md': renderErrors(),
  'spec.schema.json': renderSpecSchema(),
};

if (process.argv.includes('--check')) check();
else write();

function write(): void {
  mkdirSync(FOLDER, { recursive: true });
  for (const name of strangers()) rmSync(join(FOLDER, name));
  for (const [name, text] of Object.entries(documents)) writeFileSync(join(FOLDER, name), text);
  console.log(`wrote ${Object.keys(documents).join(', ')}`);
}

/** In both directions: every document is what the code says, and there is no document that the code does not know. */
function check(): void {
  const stale = Object.entries(documents)
    .filter(([name, text]) => readIfThere(name) !== text)
    .map(([name]) => name);
  const wrong = [...stale, ...strangers()];
  if (wrong.length === 0) return;
  console.error(
    `error: docs/reference is not what the code says (${wrong.join(', ')})\n  run: make generate`,
  );
  process.exit(1);
}

function strangers(): readonly string[] {
  try {
    return readdirSync(FOLDER).filter((name) => !Object.hasOwn(documents, name));
  } catch {
    // The folder does not exist yet.
    return [];
  }
}

function readIfThere(name: string): string | undefined {
  try {
    return readFileSync(join(FOLDER, name), 'utf8');
  } catch {
    // Missing is as wrong as different.
    return undefined;
  }
}

function renderErrors(): string {
  const rows = Object.entries(ERROR_DESCRIPTIONS)
    .map(([code, meaning]) => ({ code, meaning, status: ERROR_STATUS[code as keyof typeof ERROR_STATUS] }))
    .toSorted((a, b) => a.status - b.status || a.code.localeCompare(b.code))
    .map(({ code, meaning, status }) => `| \`${code}\` | ${status} | ${meaning} |`);
  return [
    '# Errors',
    '',
    'Generated from `packages/contract/src/errors.ts` by `make generate`.',
    '',
    'Every failure is `{"error": {"code", "message", "details"}}`. Act on the code; the message is for people.',
    '',
    '| Code | Status | Meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function renderSpecSchema(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sandbox spec',
    description: 'What a sandbox is made of. Generated from packages/contract/src/spec by `make generate`.',
    ...SandboxSpec,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
