import { escapeHtml, renderText } from './escape-html.ts';

/** The fields of a JSON schema that are used here; TypeBox schemas have them. */
interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema | readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
}

const MAX_DEPTH = 4;

/** Renders a table of fields, nested where a field has fields itself. */
export function renderSchema(schema: object, depth = 0): string {
  // A TypeBox schema is a JSON schema.
  const json = schema as JsonSchema;
  const fields = fieldsOf(json);
  if (fields === undefined) return `<p><code>${escapeHtml(typeOf(json))}</code> ${describe(json)}</p>`;
  if (Object.keys(fields.properties).length === 0) return '<p>Nothing.</p>';
  const rows = Object.entries(fields.properties).map(([name, field]) => {
    const isRequired = fields.required.includes(name);
    const nested = depth < MAX_DEPTH ? renderInner(field, depth + 1) : '';
    const mark = isRequired ? '' : '<i>optional</i> ';
    return `<tr><td><code>${escapeHtml(name)}</code></td><td><code>${escapeHtml(typeOf(field))}</code></td><td>${mark}${describe(field)}${nested}</td></tr>`;
  });
  return `<table>${rows.join('')}</table>`;
}

/** The collapsed content of a field: its fields, or one table per alternative. */
function renderInner(field: JsonSchema, depth: number): string {
  const inner = fieldsOf(field);
  if (inner !== undefined) {
    if (Object.keys(inner.properties).length === 0) return '';
    return `<details><summary>fields</summary>${renderSchema(field, depth)}</details>`;
  }
  const branches = (Array.isArray(field.items) ? [] : [field, field.items as JsonSchema | undefined])
    .flatMap((schema) => schema?.anyOf ?? [])
    .filter((branch) => branch.properties !== undefined);
  return branches
    .map((branch) => `<details><summary>${nameOf(branch)}</summary>${renderSchema(branch, depth)}</details>`)
    .join('');
}

/** Names an alternative after its constant field, or its fields. */
function nameOf({ properties = {} }: JsonSchema): string {
  const constant = Object.entries(properties).find(([, { const: value }]) => value !== undefined);
  const name =
    constant === undefined
      ? Object.keys(properties).join(', ')
      : `${constant[0]} ${JSON.stringify(constant[1].const)}`;
  return escapeHtml(name);
}

/** The fields of an object, of the items of an array, or of the one object in a union. */
function fieldsOf(
  schema: JsonSchema,
): { properties: Readonly<Record<string, JsonSchema>>; required: readonly string[] } | undefined {
  if (schema.properties !== undefined) {
    return { properties: schema.properties, required: schema.required ?? [] };
  }
  if (schema.items !== undefined && !Array.isArray(schema.items)) return fieldsOf(schema.items as JsonSchema);
  const objects = (schema.anyOf ?? []).filter((branch) => fieldsOf(branch) !== undefined);
  const [only] = objects;
  return objects.length === 1 && only !== undefined ? fieldsOf(only) : undefined;
}

function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' | ');
  if (schema.items !== undefined) {
    return Array.isArray(schema.items) ? 'tuple' : `${typeOf(schema.items as JsonSchema)}[]`;
  }
  if (schema.patternProperties !== undefined) return 'map';
  return schema.type ?? 'any';
}

function describe(schema: JsonSchema): string {
  const { default: fallback, minimum, maximum } = schema;
  const limits = [
    fallback === undefined ? '' : `default ${JSON.stringify(fallback)}`,
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
  ].filter((text) => text !== '');
  return renderText([descriptionOf(schema), limits.join(', ')].filter((text) => text !== '').join('; '));
}

/** A nullable field has the description of its other alternative. */
function descriptionOf({ description, anyOf = [] }: JsonSchema): string {
  const [only, ...others] = anyOf.filter(({ type }) => type !== 'null');
  return description ?? (others.length === 0 ? (only?.description ?? '') : '');
}
