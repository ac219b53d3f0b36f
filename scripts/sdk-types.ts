import {
  BYTES,
  CreateSandboxRequest,
  EVENT_STREAM,
  Process,
  REST_OPERATIONS,
  Sandbox,
  Snapshot,
  Volume,
  VolumeFileInfo,
  VolumeMetrics,
  type RestOperation,
} from '../packages/contract/src/rest/index.ts';

/** The parts of a schema from which its type is written. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema | readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[] | undefined;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

/** Types that the SDK, or several operations, use by name. */
const NAMED: Readonly<Record<string, Schema>> = {
  CreateSandboxRequest,
  ImageView: REST_OPERATIONS['images.list'].output.items,
  Process,
  Sandbox,
  Snapshot,
  Volume,
  VolumeFileInfo,
  VolumeMetrics,
};

/**
 * The types of `@svc/contract/rest` that the built SDK needs, written out. The declarations of the compiler are TypeBox schemas: every
 * program that imports the SDK would infer the types from them again, in twice the time that its own check takes.
 */
export function renderRestTypes(): string {
  const names = new Map(Object.entries(NAMED).map(([name, schema]) => [schema, name]));
  const declarations = Object.entries(NAMED).map(
    ([name, schema]) => `export type ${name} = ${renderShape(schema, '', names)};`,
  );
  const operations = Object.entries<RestOperation>(REST_OPERATIONS).map(
    ([name, operation]) => `  '${name}': ${renderOperation(operation, names)};`,
  );
  return `${[
    "export type { EventPattern, EventType } from './event-types.js';",
    "export type { FetchProgress, PulledImage } from './fetch-events.js';",
    ...declarations,
    "export type SandboxStatus = Sandbox['status'];",
    '/** A value that travels as JSON. */',
    'interface Json<T> { readonly json: T }',
    'export interface RestOperations {',
    ...operations,
    '}',
    'export type RestOperationName = keyof RestOperations;',
    'export interface RestInput<O extends RestOperations[RestOperationName]> {',
    "  readonly params: O['params'];",
    "  readonly query: O['query'];",
    "  readonly headers: O['headers'];",
    "  readonly body: O['body'] extends Json<infer T> ? T : O['body'] extends null ? undefined : AsyncIterable<Uint8Array>;",
    '}',
    "export type RestOutput<O extends RestOperations[RestOperationName]> = O['output'] extends Json<infer T> ? T : never;",
  ].join('\n')}\n`;
}

type Names = ReadonlyMap<Schema, string>;

function renderOperation({ params, query, headers, body, output }: RestOperation, names: Names): string {
  const render = (schema: Schema) => renderType(schema, '    ', names);
  const json = (value: RestOperation['body'] | RestOperation['output']) =>
    value === null || value === BYTES || value === EVENT_STREAM ? quote(value) : `Json<${render(value)}>`;
  return `{
    params: ${render(params)};
    query: ${render(query)};
    headers: ${render(headers)};
    body: ${json(body)};
    output: ${json(output)};
  }`;
}

function renderType(schema: Schema, indent: string, names: Names): string {
  return names.get(schema) ?? renderShape(schema, indent, names);
}

/** @throws Error for a kind of schema that the contract's builder does not create */
function renderShape(schema: Schema, indent: string, names: Names): string {
  const render = (part: Schema) => renderType(part, indent, names);
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(render))].join(' | ');
  if (schema.enum !== undefined) return schema.enum.map(quote).join(' | ');
  if (schema.const !== undefined) return quote(schema.const);
  switch (schema.type) {
    case 'object':
      return renderObject(schema, indent, names);
    case 'array':
      return isTuple(schema.items)
        ? `[${schema.items.map(render).join(', ')}]`
        : `Array<${render(schema.items ?? {})}>`;
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case undefined:
      return 'unknown';
    default:
      throw new Error(`no type is known for ${JSON.stringify(schema)}`);
  }
}

function renderObject(schema: Schema, indent: string, names: Names): string {
  const { properties = {}, required = [], patternProperties = {} } = schema;
  const [values] = Object.values(patternProperties);
  if (values !== undefined) return `Record<string, ${renderType(values, indent, names)}>`;
  const inner = `${indent}  `;
  const lines = Object.entries(properties).flatMap(([name, field]) => [
    ...describe(field, inner),
    `${inner}${quote(name)}${required.includes(name) ? '' : '?'}: ${renderType(field, inner, names)};`,
  ]);
  // TypeBox's type of an object without fields.
  return lines.length === 0 ? 'object' : ['{', ...lines, `${indent}}`].join('\n');
}

/** The description as a doc comment, which editors show at the field. */
function describe({ description }: Schema, indent: string): readonly string[] {
  return description === undefined ? [] : [`${indent}/** ${description.replaceAll('*/', '*\\/')} */`];
}

function isTuple(items: Schema['items']): items is readonly Schema[] {
  return Array.isArray(items);
}

function quote(value: unknown): string {
  return JSON.stringify(value);
}
