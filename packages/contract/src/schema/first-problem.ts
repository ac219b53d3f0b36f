import type { TSchema } from 'typebox';
import { chooseBranch } from './choose-branch.ts';
import { compile, type Validator } from './compile.ts';
import { fieldAt, isFields, itemAt, type JsonSchema, type Problem } from './json-schema.ts';

/** The first place where a value breaks its schema, and what is wrong there. In a union the branch counts that was most likely meant. */
export function firstProblem(schema: TSchema, value: unknown, whole: string): Problem {
  const { field, reason } = find(schema, value, '');
  return { field: field === '' ? whole : field, reason };
}

/** The value is known to break the schema. */
function find(schema: JsonSchema, value: unknown, path: string): Problem {
  if (schema.anyOf !== undefined) {
    const chosen = chooseBranch(schema.anyOf, value, path);
    return 'reason' in chosen ? chosen : find(chosen.branch, value, path);
  }
  const below = isFields(value) ? findInFields(schema, value, path) : findInItems(schema, value, path);
  return below ?? { field: path, reason: reasonOf(schema, value) };
}

/** A request may have very many unknown fields; an error lists at most this many. */
const MAX_NAMED = 5;

function findInFields(
  schema: JsonSchema,
  value: Readonly<Record<string, unknown>>,
  path: string,
): Problem | undefined {
  const schemaOf = fieldsOf(schema);
  const names = Object.keys(value);
  const unknown = names.filter((name) => schemaOf(name) === undefined).slice(0, MAX_NAMED);
  if (schema.additionalProperties === false && unknown.length > 0) {
    return { field: fieldAt(path, unknown.join(', ')), reason: 'is not a known field' };
  }
  const missing = (schema.required ?? []).filter((name) => value[name] === undefined);
  if (missing.length > 0) return { field: fieldAt(path, missing.join(', ')), reason: 'is required' };
  for (const name of names) {
    const field = schemaOf(name);
    if (field !== undefined && !fits(field, value[name]))
      return find(field, value[name], fieldAt(path, name));
  }
  return undefined;
}

function fieldsOf({ properties = {}, patternProperties = {} }: JsonSchema) {
  const patterns = Object.entries(patternProperties).map(
    ([pattern, schema]) => [new RegExp(pattern, 'u'), schema] as const,
  );
  return (name: string): JsonSchema | undefined =>
    Object.hasOwn(properties, name)
      ? properties[name]
      : patterns.find(([pattern]) => pattern.test(name))?.[1];
}

function findInItems({ items }: JsonSchema, value: unknown, path: string): Problem | undefined {
  if (!Array.isArray(value) || items === undefined) return undefined;
  for (const [index, item] of value.entries()) {
    const schema = Array.isArray(items) ? (items as readonly JsonSchema[])[index] : (items as JsonSchema);
    if (schema !== undefined && !fits(schema, item)) return find(schema, item, itemAt(path, index));
  }
  return undefined;
}

/** A pattern says little to people; the description of the field says what it means. */
function reasonOf(schema: JsonSchema, value: unknown): string {
  if (schema.enum !== undefined)
    return `must be one of ${schema.enum.map((item) => JSON.stringify(item)).join(', ')}`;
  if (schema.const !== undefined) return `must be ${JSON.stringify(schema.const)}`;
  const [error] = validatorOf(schema).errors(value);
  if (error === undefined) return 'is not valid';
  if (error.keyword !== 'pattern' || schema.description === undefined) return error.message;
  return `is not valid: ${schema.description}`;
}

function fits(schema: JsonSchema, value: unknown): boolean {
  return validatorOf(schema).check(value);
}

/** Validators of parts of the contract's schemas, so the number of entries is bounded. */
const validators = new WeakMap<JsonSchema, Validator>();

function validatorOf(schema: JsonSchema): Validator {
  let validator = validators.get(schema);
  // The value is a part of a schema of the contract.
  if (validator === undefined) validators.set(schema, (validator = compile(schema as TSchema)));
  return validator;
}
