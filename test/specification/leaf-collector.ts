import type { JsonSchema } from '../../packages/contract/src/schema/json-schema.ts';

export type Side = 'request' | 'answer';

export interface Leaf {
  readonly id: string;
  /** For people: `integer 1–255`, `string or null`. */
  readonly type: string;
  readonly default: string;
  readonly sides: readonly Side[];
}

interface Bounds {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
}

/**
 * Finds what can be said in a value of a schema. Items of arrays and shapes of a union share the name of their place, so a
 * field that several shapes have is one leaf. Each value of an enumeration is a leaf of its own, `place=value`.
 */
export class LeafCollector {
  readonly #leaves = new Map<string, { types: Set<string>; fallback: string; sides: Set<Side> }>();

  get all(): readonly Leaf[] {
    return [...this.#leaves].map(([id, { types, fallback, sides }]) => ({
      id,
      type: describeTypes([...types]),
      default: fallback,
      sides: [...sides],
    }));
  }

  add(id: string, type: string, side?: Side, fallback = ''): void {
    const leaf = this.#leaves.get(id) ?? { types: new Set<string>(), fallback, sides: new Set<Side>() };
    leaf.types.add(type);
    if (fallback !== '') leaf.fallback = fallback;
    if (side !== undefined) leaf.sides.add(side);
    this.#leaves.set(id, leaf);
  }

  walk(id: string, given: object, side: Side): void {
    // Schemas of the contract are JSON Schema; their types say more.
    const schema = given as JsonSchema & Bounds;
    const { anyOf, items, properties } = schema;
    if (anyOf !== undefined) return anyOf.forEach((branch) => this.walk(id, branch, side));
    if (properties !== undefined) {
      for (const [name, field] of Object.entries(properties)) this.walk(`${id}.${name}`, field, side);
      return undefined;
    }
    if (isSchema(items) && (items.properties !== undefined || items.anyOf !== undefined))
      return this.walk(id, items, side);
    const values = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
    const fallback = schema.default === undefined ? '' : JSON.stringify(schema.default);
    this.add(id, typeOf(schema), side, fallback);
    for (const value of values) this.add(`${id}=${String(value)}`, 'value', side);
    if (isSchema(items))
      for (const value of items.enum ?? []) this.add(`${id}=${String(value)}`, 'value', side);
    return undefined;
  }
}

function isSchema(items: JsonSchema['items']): items is JsonSchema {
  return items !== undefined && !Array.isArray(items);
}

function typeOf({
  type,
  enum: values,
  const: only,
  patternProperties,
  items,
  minimum,
  maximum,
}: JsonSchema & Bounds): string {
  if (values !== undefined || only !== undefined) return 'choice';
  if (patternProperties !== undefined) return 'map';
  if (type === 'array') return isSchema(items) ? `array of ${typeOf(items)}` : 'array';
  if (minimum !== undefined && maximum !== undefined) return `${type ?? ''} ${minimum}–${maximum}`;
  return type ?? 'any';
}

/** `null` comes last; without bounds it is said only where no side has any. */
function describeTypes(types: readonly string[]): string {
  const bounded = types.filter(
    (type) => !types.some((other) => other !== type && other.startsWith(`${type} `)),
  );
  const known = bounded.filter((type) => type !== 'null');
  return [...known, ...(bounded.length > known.length ? ['null'] : [])].join(' or ');
}
