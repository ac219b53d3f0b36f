import type { Tool } from '@modelcontextprotocol/sdk/types.js';

/** Bounds that models keep to anyway. The server checks all of them, and answers with the field and what it must be. */
const UNSHOWN: ReadonlySet<string> = new Set([
  'additionalProperties',
  'pattern',
  'patternProperties',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'maxProperties',
]);
/** Fields of nearly every tool; the instructions of the server say what they are. */
const EXPLAINED_ONCE: ReadonlySet<string> = new Set(['sandbox', 'namespace']);

/**
 * What a tool takes, as it is shown to models: clients put the list of tools before every conversation, so that each character
 * of it is paid for.
 */
export function shownSchema(schema: object): Tool['inputSchema'] {
  // What tools take are objects, and their schemas are plain JSON Schema.
  return shorten(JSON.parse(JSON.stringify(schema))) as Tool['inputSchema'];
}

function shorten(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(shorten);
  if (typeof schema !== 'object' || schema === null) return schema;
  const one = withoutNull(schema);
  const shown = Object.entries(one).filter(([keyword]) => !UNSHOWN.has(keyword));
  return Object.fromEntries(
    shown.map(([keyword, value]) => [
      keyword,
      keyword === 'properties' ? shortenFields(value as Record<string, object>) : shorten(value),
    ]),
  );
}

function shortenFields(fields: Readonly<Record<string, object>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const { description, ...rest } = shorten(field) as { readonly description?: string };
      return [name, EXPLAINED_ONCE.has(name) || description === undefined ? rest : { ...rest, description }];
    }),
  );
}

/** A field that may be left out may be null too; clients that make a form of a schema stumble over that choice. */
function withoutNull(schema: object): object {
  const { anyOf, ...rest } = schema as { readonly anyOf?: readonly { readonly type?: unknown }[] };
  const branches = anyOf?.filter(({ type }) => type !== 'null');
  const [only] = branches ?? [];
  return branches?.length === 1 && only !== undefined ? withoutNull({ ...only, ...rest }) : schema;
}
