import type { TObject, TSchema } from 'typebox';
import { PlatformError } from '../errors.ts';
import { compile, type Validator } from '../schema/compile.ts';
import { firstProblem } from '../schema/first-problem.ts';
import { REST_OPERATIONS, type RestOperationName } from './rest-operations.ts';
import type { RestOperation } from './rest-operation.ts';

type Part = 'params' | 'query' | 'headers' | 'body';

const validators = new Map<string, Validator>();

/**
 * Checks one part of a request. Texts of the query are converted to the types of the schema: numbers, booleans, and objects in JSON.
 * @throws PlatformError `invalid_request` with details `{field, reason}`
 */
export function checkRestInput(name: RestOperationName, part: Part, value: unknown): unknown {
  const operation: RestOperation = REST_OPERATIONS[name];
  const schema = operation[part];
  if (schema === null || typeof schema === 'string') return value;
  const given = part === 'query' ? coerce(operation.query, value as Record<string, unknown>) : value;
  const validator = validatorOf(`${name} ${part}`, schema);
  if (validator.check(given)) return given;
  const { field, reason } = firstProblem(schema, given, part);
  throw new PlatformError('invalid_request', `${field} ${reason}`, { details: { field, reason, in: part } });
}

function coerce(schema: TObject, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const known: Readonly<Record<string, TSchema & { readonly type?: unknown }>> = schema.properties;
  const entries = Object.entries(values).map(([name, value]) => {
    const type = Object.hasOwn(known, name) ? known[name]?.type : undefined;
    return [name, typeof value === 'string' ? coerceText(value, type) : value] as const;
  });
  return Object.fromEntries(entries);
}

/** A text that cannot be converted stays as it is, so that the schema refuses it by name. */
function coerceText(text: string, type: unknown): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  if (type === 'object') return parseText(text);
  return text;
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function validatorOf(key: string, schema: TSchema): Validator {
  const known = validators.get(key);
  if (known !== undefined) return known;
  const compiled = compile(schema);
  validators.set(key, compiled);
  return compiled;
}
