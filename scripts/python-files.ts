import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { ERROR_STATUS } from '../packages/contract/src/index.ts';
import {
  EVENT_TYPES,
  REST_OPERATIONS,
  Process,
  Sandbox,
  Snapshot,
  Volume,
  VolumeFileInfo,
  VolumeMetrics,
} from '../packages/contract/src/rest/index.ts';
import { REST_ROUTES } from '../packages/contract/src/rest/rest-routes.ts';
import { isTransient } from '../packages/contract/src/retry.ts';
import about from '../packages/sdk/package.json' with { type: 'json' };

/** The parts of a schema from which a Python type is written. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema | readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[] | undefined;
}

const OUTPUTS = REST_OPERATIONS;

/** The records of the server that the Python SDK hands out, by the name of their class. */
const RECORDS: Readonly<Record<string, object>> = {
  SandboxInfo: Sandbox,
  SandboxMetrics: OUTPUTS['sandboxes.metrics'].output,
  ProcessInfo: Process,
  ContextInfo: OUTPUTS['contexts.get'].output,
  Preview: OUTPUTS['previews.list'].output.items,
  NewPreview: OUTPUTS['previews.create'].output,
  Snapshot,
  NetworkExplanation: OUTPUTS['network.explain'].output,
  NetworkDecision: OUTPUTS['network.log'].output.properties.data.items,
  VolumeInfo: Volume,
  VolumeFileInfo,
  VolumeMetrics,
  ImageInfo: OUTPUTS['images.list'].output.items,
  AuditEvent: OUTPUTS['events.get'].output,
  Secret: OUTPUTS['secrets.list'].output.items,
  SshKey: OUTPUTS['sshKeys.list'].output.items,
  Webhook: OUTPUTS['webhooks.get'].output,
  NewWebhook: OUTPUTS['webhooks.create'].output,
  WebhookDelivery: OUTPUTS['webhooks.test'].output,
  OrganizationInfo: OUTPUTS['organizations.own'].output,
  Member: OUTPUTS['members.list'].output.properties.data.items,
  ApiKey: OUTPUTS['apiKeys.list'].output.properties.data.items,
  UsageSummary: OUTPUTS['billing.getUsage'].output,
  SandboxUsage: OUTPUTS['billing.getSandboxUsage'].output,
  StorageUsage: OUTPUTS['billing.getStorageUsage'].output,
  Quotas: OUTPUTS['quotas.get'].output,
  ServerCapabilities: OUTPUTS['capabilities.get'].output,
  CodeException: exceptionSchema(),
};

const HEAD = '"""Generated from packages/contract by `make generate`."""';

/** The files of the Python SDK that say what the contract and its asynchronous source say, by their names. */
export function renderPythonFiles(): Readonly<Record<string, string>> {
  return {
    '_version.py': `${HEAD}\n\n__version__ = "${about.version}"\n`,
    '_error_codes.py': renderErrorCodes(),
    '_routes.py': renderRoutes(),
    'records.py': renderRecords(),
    ...renderSynchronous(),
  };
}

/** Python reads Python. */
function renderSynchronous(): Readonly<Record<string, string>> {
  const program = join(import.meta.dirname, 'generate-python-sync.py');
  const output = execFileSync('python3', ['-I', program], { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
  const texts = JSON.parse(output) as Readonly<Record<string, string>>;
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [`_sync/${name}`, text]));
}

function renderErrorCodes(): string {
  const codes = Object.keys(ERROR_STATUS) as (keyof typeof ERROR_STATUS)[];
  return [
    HEAD,
    '',
    '#: Every code of the server, and whether the same call may succeed some seconds later.',
    'CODES: dict[str, bool] = {',
    ...codes.map((code) => `    "${code}": ${isTransient(code) ? 'True' : 'False'},`),
    '}',
    '',
  ].join('\n');
}

function renderRoutes(): string {
  return [
    HEAD,
    '',
    '#: Method, path, audience, body and output of every operation.',
    'ROUTES: dict[str, str] = {',
    ...Object.entries(REST_ROUTES).map(([name, route]) => `    "${name}": "${route}",`),
    '}',
    '',
  ].join('\n');
}

function renderRecords(): string {
  const classes: string[] = [];
  for (const [name, schema] of Object.entries(RECORDS)) {
    // They are JSON schemas; their types say more than is read here.
    writeClass(name, JSON.parse(JSON.stringify(schema)) as Schema, classes);
  }
  return [
    HEAD,
    '',
    'from __future__ import annotations',
    '',
    'from collections.abc import Mapping',
    'from dataclasses import dataclass',
    'from typing import Any, Literal',
    '',
    `EventType = ${literal(Object.keys(EVENT_TYPES))}`,
    '',
    '',
    classes.join('\n\n'),
  ].join('\n');
}

/** Nested objects come first, as classes of their own; what lies deeper is left as mappings. */
function writeClass(name: string, schema: Schema, classes: string[], isNested = false): void {
  const required = new Set(schema.required);
  const fields = Object.entries(schema.properties ?? {}).flatMap(([field, each]) => {
    const type = typeOf(each, isNested ? null : `${name}${pascal(field)}`, classes);
    const isOptional = !required.has(field);
    const written = isOptional && !type.endsWith('None') && type !== 'Any' ? `${type} | None` : type;
    const note = each.description === undefined ? [] : [`    #: ${each.description.replaceAll('\n', ' ')}`];
    return [...note, `    ${field}: ${written}${isOptional ? ' = None' : ''}`];
  });
  classes.push(`@dataclass(frozen=True, kw_only=True)\nclass ${name}:\n${fields.join('\n')}\n`);
}

/** `name` is that of the class for an object; null: it is a mapping. */
function typeOf(schema: Schema, name: string | null, classes: string[]): string {
  if (schema.enum !== undefined) return literal(schema.enum);
  if (schema.const !== undefined) return literal([schema.const]);
  if (schema.anyOf !== undefined) return unionOf(schema.anyOf, name, classes);
  if (schema.type === 'array') {
    if (schema.items === undefined || Array.isArray(schema.items)) return 'tuple[Any, ...]';
    // Checked to be one schema in the line above.
    return `tuple[${typeOf(schema.items as Schema, name, classes)}, ...]`;
  }
  if (schema.type === 'object') {
    if (name === null || Object.keys(schema.properties ?? {}).length === 0) return 'Mapping[str, Any]';
    writeClass(name, schema, classes, true);
    return name;
  }
  return SCALARS[schema.type ?? ''] ?? 'Any';
}

const SCALARS: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
};

/** Of an object and null the object is a class; several objects are mappings, since they differ in their keys. */
function unionOf(members: readonly Schema[], name: string | null, classes: string[]): string {
  const some = members.filter(({ type }) => type !== 'null');
  const nullable = some.length < members.length;
  const isOne = some.filter(({ type }) => type === 'object').length <= 1;
  const types = some.map((each) =>
    each.type === 'object' && !isOne ? 'Mapping[str, Any]' : typeOf(each, name, classes),
  );
  const unique = [...new Set(types)];
  if (unique.includes('Any')) return 'Any';
  return [...unique, ...(nullable ? ['None'] : [])].join(' | ');
}

function literal(values: readonly unknown[]): string {
  return `Literal[${values.map((value) => JSON.stringify(value)).join(', ')}]`;
}

function pascal(field: string): string {
  return field.replaceAll(/(?:^|_)([a-z0-9])/g, (_, first: string) => first.toUpperCase());
}

function exceptionSchema(): object {
  const [exception] = OUTPUTS['code.run'].output.properties.exception.anyOf;
  return exception;
}
