import type { TObject, TSchema } from 'typebox';
import { ERROR_DESCRIPTIONS } from '../error-descriptions.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';
import { BYTES, EVENT_STREAM, takesVersion, type RestOperation } from './rest-operation.ts';
import { pathsOf } from './paths.ts';
import { REST_OPERATIONS } from './rest-operations.ts';
import { Sandbox, CreateSandboxRequest, SandboxVolumeMount, SnapshotLocation } from './sandbox-fields.ts';
import { Volume, VolumeMetrics } from './volumes.ts';
import { Mount, Patch } from '../spec/mounts.ts';
import { NetworkPolicy, NetworkRequest } from '../spec/network.ts';
import { SecretEntryRequest } from '../spec/secret-request.ts';
import { Confirmation, MessageResponse } from './fields.ts';
import { Snapshot, SnapshotOperation } from './snapshots.ts';
import { SandboxSpecView } from './spec-view.ts';
import { VolumeFileInfo } from './volume-files.ts';

/** Schemas that documents and clients know by name. */
const COMPONENTS = {
  Confirmation,
  CreateSandboxRequest,
  MessageResponse,
  Mount,
  Network: NetworkRequest,
  NetworkPolicy,
  Patch,
  Sandbox,
  SandboxSpecView,
  SandboxVolumeMount,
  SecretEntry: SecretEntryRequest,
  Snapshot,
  SnapshotOperation,
  SnapshotLocation,
  Volume,
  VolumeFileInfo,
  VolumeMetrics,
} as const satisfies Record<string, TSchema>;

export const API_VERSION = '0.1.0';

type Json = Readonly<Record<string, unknown>>;

/** The errors that every operation may return. */
const COMMON_ERRORS: readonly ErrorCode[] = ['invalid_request', 'rate_limited', 'internal', 'unavailable'];

const DESCRIPTION = `Request and response bodies are JSON unless stated otherwise; file content is raw bytes.

Every answer that is not 2xx has the error envelope, and every answer an \`X-Request-Id\`. A 429 says in \`Retry-After\` when to ask again; where requests are limited, \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` say how far.

Mutations take an \`Idempotency-Key\`: the first outcome is kept for 24 hours and repeated with \`Idempotency-Replayed: true\`. Sandboxes and volumes have an \`ETag\`, which \`If-Match\` of a later change compares.`;

/** The control plane as an OpenAPI 3.1 document, from the table alone. */
export function describeOpenApi(): Json {
  const paths: Record<string, Record<string, Json>> = {};
  const tags = new Set<string>();
  for (const [name, operation] of Object.entries<RestOperation>(REST_OPERATIONS)) {
    tags.add(operation.tag);
    for (const { path, audience } of pathsOf(operation)) {
      const methods = (paths[`/v1${path}`] ??= {});
      methods[operation.method.toLowerCase()] = describeOperation(name, operation, path, audience);
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc control plane',
      version: API_VERSION,
      summary: 'Sandboxes, volumes, quotas, usage and audit events of one organization.',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that serves this document' }],
    tags: [...tags].toSorted().map((name) => ({ name, description: `Everything about ${name}.` })),
    paths,
    components: {
      securitySchemes: {
        api_key: { type: 'http', scheme: 'bearer', description: 'Organization API key, prefix `svc_`' },
        user: {
          type: 'http',
          scheme: 'bearer',
          description: 'Personal access token (`svc_pat_`) or session',
        },
      },
      schemas: { ...describeComponents(), Error: ERROR_SCHEMA },
    },
  };
}

const ERROR_SCHEMA = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'details'],
      properties: {
        code: { type: 'string', enum: Object.keys(ERROR_STATUS) },
        message: { type: 'string' },
        details: { type: ['object', 'null'] },
      },
    },
  },
};

function describeOperation(
  name: string,
  operation: RestOperation,
  path: string,
  audience: 'anyone' | 'key' | 'user',
): Json {
  const isTwin = path !== operation.path;
  return {
    operationId: isTwin ? `org.${name}` : name,
    summary: operation.summary,
    tags: [operation.tag],
    security: audience === 'anyone' ? [] : [{ [audience === 'key' ? 'api_key' : 'user']: [] }],
    parameters: [
      ...(path.startsWith(ORGANIZATION_PREFIX) ? [SLUG_PARAMETER] : []),
      ...describeParameters('path', operation.params),
      ...describeParameters('query', operation.query),
      ...describeParameters('header', operation.headers),
      ...(operation.method === 'GET' ? [] : [IDEMPOTENCY_PARAMETER]),
      ...(takesVersion(operation) ? [IF_MATCH_PARAMETER] : []),
    ],
    ...describeBody(operation.body),
    responses: {
      [operation.status]: describeOutput(operation),
      ...describePart(operation),
      ...describeErrors(operation, audience, path),
    },
  };
}

const ORGANIZATION_PREFIX = '/orgs/{slug}';
const SLUG_PARAMETER = {
  name: 'slug',
  in: 'path',
  required: true,
  description: 'Slug of the organization',
  schema: { type: 'string' },
};
const IDEMPOTENCY_PARAMETER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The first outcome is kept for 24 hours and repeated for the same key',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

const IF_MATCH_PARAMETER = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'The ETag of an earlier answer: if it has changed since, nothing is done',
  schema: { type: 'string' },
};

function describeParameters(place: 'path' | 'query' | 'header', { properties, required }: TObject): Json[] {
  const needed: readonly string[] = required ?? [];
  return Object.entries<TSchema & { readonly description?: string }>(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || needed.includes(name),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    ...(isObject(schema)
      ? { content: { 'application/json': { schema: refer(schema) } } }
      : { schema: refer(schema) }),
  }));
}

/** Such a parameter is a text of JSON. */
function isObject(schema: TSchema & { readonly type?: unknown }): boolean {
  return schema.type === 'object';
}

function describeBody(body: RestOperation['body']): Json {
  if (body === null) return {};
  if (body === BYTES) {
    const schema = { type: 'string', format: 'binary' };
    return { requestBody: { required: true, content: { 'application/octet-stream': { schema } } } };
  }
  const needed: unknown = (body as { readonly required?: unknown }).required;
  const required = Array.isArray(needed) && needed.length > 0;
  return { requestBody: { required, content: { 'application/json': { schema: refer(body) } } } };
}

function describeOutput({ output, summary }: RestOperation): Json {
  const description = `Done: ${summary.charAt(0).toLowerCase()}${summary.slice(1)}`;
  if (output === BYTES) {
    const schema = { type: 'string', format: 'binary' };
    return { description, content: { 'application/octet-stream': { schema } } };
  }
  if (output === EVENT_STREAM) {
    return { description, content: { 'text/event-stream': { schema: { type: 'string' } } } };
  }
  const headers = VERSIONED.has(output) ? { headers: { ETag: ETAG } } : {};
  return { description, ...headers, content: { 'application/json': { schema: refer(output) } } };
}

const PARTIAL_CONTENT = 206;
const CONTENT_RANGE = {
  description: 'Which bytes of how many, as `bytes 0-1023/4096`',
  schema: { type: 'string' },
};

/** The answer with a part of the bytes, where one may be asked for. */
function describePart({ headers, output }: RestOperation): Json {
  if (output !== BYTES || !Object.hasOwn(headers.properties, 'range')) return {};
  const content = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
  const description = 'The bytes of the range that was asked for';
  return { [PARTIAL_CONTENT]: { description, headers: { 'Content-Range': CONTENT_RANGE }, content } };
}

/** The outputs that are answered with an ETag. */
const VERSIONED: ReadonlySet<RestOperation['output']> = new Set([Sandbox, Volume]);
const ETAG = { description: 'Changes whenever the record does', schema: { type: 'string' } };

function describeErrors(operation: RestOperation, audience: string, path: string): Json {
  const codes = new Set<ErrorCode>([...operation.errors, ...COMMON_ERRORS]);
  if (audience !== 'anyone') codes.add('invalid_api_key');
  if (audience === 'user') codes.add('forbidden');
  if (path.startsWith(ORGANIZATION_PREFIX)) codes.add('org_not_found');
  if (operation.method !== 'GET') codes.add('idempotency_conflict');
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const status = ERROR_STATUS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const schema = { $ref: '#/components/schemas/Error' };
  const responses = [...byStatus].map(([status, list]) => [
    String(status),
    {
      description: list.map((code) => `\`${code}\`: ${ERROR_DESCRIPTIONS[code]}`).join('\n\n'),
      content: { 'application/json': { schema } },
    },
  ]);
  return Object.fromEntries(responses) as Json;
}

function describeComponents(): Json {
  return Object.fromEntries(
    Object.entries<TSchema>(COMPONENTS).map(([name, schema]) => [name, refer(schema, true)]),
  );
}

/** By their text, because wrapping a schema as optional copies it. */
const NAMES = new Map(Object.entries(COMPONENTS).map(([name, schema]) => [JSON.stringify(schema), name]));

/** A copy of the schema in which those that have a name are references. */
function refer(schema: unknown, isDefinition = false): unknown {
  if (Array.isArray(schema)) return schema.map((item) => refer(item));
  if (typeof schema !== 'object' || schema === null) return schema;
  const name = isDefinition ? undefined : NAMES.get(JSON.stringify(schema));
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, refer(value)]));
  return 'additionalItems' in copy ? toTuple(copy) : copy;
}

/** JSON Schema 2020-12, which OpenAPI 3.1 uses, spells tuples in a new way. */
function toTuple({ items, additionalItems, ...rest }: Record<string, unknown>): unknown {
  return { ...rest, prefixItems: items, items: additionalItems };
}
