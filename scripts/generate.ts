import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ERROR_STATUS, isErrorCode, SandboxSpec } from '../packages/contract/src/index.ts';
import {
  BYTES,
  describeOpenApi,
  EVENT_TYPES,
  pathsOf,
  REST_OPERATIONS,
  type RestOperation,
} from '../packages/contract/src/rest/index.ts';
import { isTransient } from '../packages/contract/src/retry.ts';
import { ERROR_DESCRIPTIONS } from '../packages/contract/src/error-descriptions.ts';
import { renderCliReference } from './cli-reference.ts';
import { renderMcpReference } from './mcp-reference.ts';
import { renderGrafanaDashboard, renderMetricsReference } from './metrics-reference.ts';
import { renderPromises } from './promises-table.ts';
import { renderPythonFiles } from './python-files.ts';
import { renderSdkReference } from './sdk-reference.ts';
import { renderSpecificationReference } from './specification-reference.ts';

/**
 * Generates docs/reference and the table of routes that clients load from the code, and the table of docs/promises.md from
 * bench/results.json. With `--check` it writes nothing and fails when a file is out of date.
 */
const FOLDER = join(import.meta.dirname, '../docs/reference');
const PRINT_WIDTH = 110;
const PROMISES = join(import.meta.dirname, '../docs/promises.md');
const PYTHON = join(import.meta.dirname, '../packages/sdk-python/src/svc_sdk');
const ROUTES = join(import.meta.dirname, '../packages/contract/src/rest/rest-routes.ts');

const documents: Readonly<Record<string, string>> = {
  'errors.md': renderErrors(),
  'events.md': renderEvents(),
  'spec.schema.json': renderSpecSchema(),
  'openapi.json': `${JSON.stringify(describeOpenApi(), null, 2)}\n`,
  'operations.md': renderOperations(),
  'sdk.md': renderSdkReference(),
  'cli.md': await renderCliReference(),
  'mcp.md': renderMcpReference(),
  'metrics.md': renderMetricsReference(),
  'grafana-dashboard.json': renderGrafanaDashboard(),
  'specification.md': await renderSpecificationReference(),
};
const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(documents).map(([name, text]) => [join(FOLDER, name), text])),
  [ROUTES]: renderRoutes(),
  [PROMISES]: renderPromises(PROMISES),
  ...Object.fromEntries(
    Object.entries(renderPythonFiles()).map(([name, text]) => [join(PYTHON, name), text]),
  ),
};

if (process.argv.includes('--check')) check();
else write();

function write(): void {
  mkdirSync(FOLDER, { recursive: true });
  for (const name of unknownFiles()) rmSync(join(FOLDER, name));
  for (const [path, text] of Object.entries(files)) writeFileSync(path, text);
  console.log(`wrote ${namesOf(Object.keys(files))}`);
}

/** Checks both directions: every document is up to date, and there is no document that is not generated. */
function check(): void {
  const stale = Object.entries(files)
    .filter(([path, text]) => readIfThere(path) !== text)
    .map(([path]) => path);
  const wrong = [...stale, ...unknownFiles()];
  if (wrong.length === 0) return;
  console.error(
    `error: generated files are not what the code says (${namesOf(wrong)})\n  run: make generate`,
  );
  process.exit(1);
}

function namesOf(paths: readonly string[]): string {
  return paths.map((path) => basename(path)).join(', ');
}

function unknownFiles(): readonly string[] {
  try {
    return readdirSync(FOLDER).filter((name) => !Object.hasOwn(documents, name));
  } catch {
    // The folder does not exist yet.
    return [];
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // A missing file counts as out of date.
    return undefined;
  }
}

function renderErrors(): string {
  const rows = Object.entries(ERROR_DESCRIPTIONS)
    .map(([code, meaning]) => ({ code, meaning, status: ERROR_STATUS[code as keyof typeof ERROR_STATUS] }))
    .toSorted((a, b) => a.status - b.status || a.code.localeCompare(b.code))
    .map(({ code, meaning, status }) => {
      const repetition = isErrorCode(code) && isTransient(code) ? 'yes' : '';
      return `| \`${code}\` | ${status} | ${repetition} | ${meaning} |`;
    });
  return [
    '# Errors',
    '',
    'Generated from `packages/contract/src/errors.ts` by `make generate`.',
    '',
    'Every failure is `{"error": {"code", "message", "details"}}`. Act on the code; the message is for people.',
    '',
    'Clients repeat calls automatically after errors that are marked so: these pass within seconds.',
    '',
    '| Code | Status | Repeated | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function renderEvents(): string {
  const rows = Object.entries(EVENT_TYPES).map(
    ([type, { category, meaning }]) => `| \`${type}\` | \`${category}.*\` | ${meaning} |`,
  );
  return [
    '# Events',
    '',
    'Generated from `packages/contract/src/rest/event-types.ts` by `make generate`.',
    '',
    'What the audit log holds (`svc events`, `GET /v1/events`), and what [webhooks](../guides/webhooks.md) can be told of: by type, by category, or all with `*`.',
    '',
    '| Type | Of | Meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function renderOperations(): string {
  const rows = Object.entries<RestOperation>(REST_OPERATIONS).flatMap(([name, operation]) =>
    pathsOf(operation).map(
      ({ path, audience }) =>
        `| \`${operation.method} /v1${path}\` | ${operation.summary} | ${audience} | ${audience === 'user' ? operation.role : ''} | \`${name}\` |`,
    ),
  );
  return [
    '# Operations of the control plane',
    '',
    'Generated from `packages/contract/src/rest` by `make generate`. Bodies and answers are in `openapi.json`, and on the page `/docs` of a running server.',
    '',
    '| Request | What it does | Credential | Least role | Operation |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function renderRoutes(): string {
  const lines = Object.entries<RestOperation>(REST_OPERATIONS).map(([name, operation]) => {
    const { method, path, audience } = operation;
    const body = operation.body === null ? 'none' : operation.body === BYTES ? BYTES : 'json';
    const output = typeof operation.output === 'string' ? operation.output : 'json';
    const route = `'${[method, path, audience, body, output].join(' ')}',`;
    // In the layout of the formatter.
    const line = `  '${name}': ${route}`;
    return line.length <= PRINT_WIDTH ? line : `  '${name}':\n    ${route}`;
  });
  return [
    "import type { RestOperationName } from './rest-operations.ts';",
    '',
    '/** Method, path, audience, body and output of every operation. Generated from REST_OPERATIONS by `make generate`. */',
    'export const REST_ROUTES: Readonly<Record<RestOperationName, string>> = {',
    ...lines,
    '};',
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
