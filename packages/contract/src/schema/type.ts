import type { TSchema, Type as Typebox } from 'typebox';

/** A schema as a JSON object. */
type Keywords = Readonly<Record<string, unknown>>;

/** Marks a field as optional until its object lists the required ones; not part of the schema. */
const OPTIONAL = '~optional';
const ANY_KEY = '^.*$';

/**
 * Builds the schemas of the contract: the same JSON Schema, and the same types, as TypeBox builds. Its own builder can do much more,
 * in 700 modules, which every process that runs from the sources would load (docs/decisions/0029-router-schema-builder-and-frames-are-our-own.md).
 */
export const Type = {
  Array: (items: Keywords, options?: Keywords) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Keywords) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly unknown[], options?: Keywords) => ({ enum: values, ...options }),
  Integer: (options?: Keywords) => ({ type: 'integer', ...options }),
  Literal: (value: unknown, options?: Keywords) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: Keywords) => ({ type: 'null', ...options }),
  Number: (options?: Keywords) => ({ type: 'number', ...options }),
  Object: buildObject,
  Optional: markOptional,
  Partial: ({ properties }: { readonly properties: Keywords }, options?: Keywords) =>
    buildObject(mapValues(properties, markOptional), options),
  Record: (key: { readonly pattern?: string }, value: Keywords, options?: Keywords) => ({
    type: 'object',
    patternProperties: { [key.pattern ?? ANY_KEY]: value },
    ...options,
  }),
  String: (options?: Keywords) => ({ type: 'string', ...options }),
  Tuple: (items: readonly Keywords[], options?: Keywords) => ({
    type: 'array',
    additionalItems: false,
    items,
    minItems: items.length,
    ...options,
  }),
  Union: (anyOf: readonly Keywords[], options?: Keywords) => ({ anyOf, ...options }),
  Unknown: (options?: Keywords) => ({ ...options }),
  // A test compares each of them with TypeBox's own, whose types say what is made of what.
} as unknown as Pick<
  typeof Typebox,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'Record'
  | 'String'
  | 'Tuple'
  | 'Union'
  | 'Unknown'
>;

function buildObject(properties: Keywords, options?: Keywords): Keywords {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]));
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
}

function markOptional(schema: object): object {
  return Object.defineProperty({ ...schema }, OPTIONAL, { value: true });
}

function isOptional(schema: unknown): boolean {
  return Object.hasOwn(schema as TSchema, OPTIONAL);
}

function mapValues(values: Keywords, change: (value: object) => object): Keywords {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value as object)]));
}
