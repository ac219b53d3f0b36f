import type { Tool } from '@modelcontextprotocol/sdk/types.js';

/**
 * Keywords that are hidden from models, which rarely violate them. The server checks all of them, and its errors name
 * the field and its bounds.
 */
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
/** Fields of nearly every tool, explained once in the server's instructions. */
const EXPLAINED_ONCE: ReadonlySet<string> = new Set(['sandbox', 'namespace']);

/**
 * Shortens the input schema of a tool: clients put the list of tools before every conversation, and each character
 * has a price.
 */
export function shownSchema(schema: object): Tool['inputSchema'] {
  // Inputs of tools are objects, and their schemas plain JSON Schema.
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

/** Removes null from optional fields; clients that build a form from a schema cannot handle the union. */
function withoutNull(schema: object): object {
  const { anyOf, ...rest } = schema as { readonly anyOf?: readonly { readonly type?: unknown }[] };
  const branches = anyOf?.filter(({ type }) => type !== 'null');
  const [only] = branches ?? [];
  return branches?.length === 1 && only !== undefined ? withoutNull({ ...only, ...rest }) : schema;
}
