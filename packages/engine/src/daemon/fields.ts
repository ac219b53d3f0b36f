import { PlatformError } from '@svc/contract/errors';
import type { SecretValues } from '@svc/contract/orchestrator';
import { parseCeiling } from '../policy/ceiling.ts';

const ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;

interface FieldTypes {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
  readonly object: object;
}

/** The fields of a JSON object. @throws PlatformError `invalid_request` */
export function fields(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  throw new PlatformError('invalid_request', 'the body must be a JSON object');
}

export function optional<T extends keyof FieldTypes>(
  given: Readonly<Record<string, unknown>>,
  name: string,
  type: T,
): FieldTypes[T] | undefined {
  const value = given[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === type) return value as FieldTypes[T];
  throw new PlatformError('invalid_request', `${name}: must be a ${type}`, { details: { field: name } });
}

export function required<T extends keyof FieldTypes>(
  given: Readonly<Record<string, unknown>>,
  name: string,
  type: T,
): FieldTypes[T] {
  const value = optional(given, name, type);
  if (value !== undefined) return value;
  throw new PlatformError('invalid_request', `${name}: is required`, { details: { field: name } });
}

/** A name that the caller chooses for a new object. It is never used as a file name. */
export function readId(given: Readonly<Record<string, unknown>>): string {
  const id = required(given, 'id', 'string');
  if (ID.test(id)) return id;
  throw new PlatformError('invalid_request', 'id: must be 1–128 letters, digits, . _ : / or -', {
    details: { field: 'id' },
  });
}

/** @throws PlatformError `invalid_request`, whose message never contains a value. */
export function readSecretValues(given: unknown): SecretValues {
  const values = given === undefined || given === null ? {} : fields(given);
  if (Object.values(values).every((value) => typeof value === 'string')) return values as SecretValues;
  throw new PlatformError('invalid_request', 'secretValues: must map env_var to a text', {
    details: { field: 'secretValues' },
  });
}

/** Undefined when absent. @throws PlatformError `invalid_request` */
export function readNetworkCeiling(given: Readonly<Record<string, unknown>>): {
  readonly networkCeiling?: readonly string[] | null;
} {
  const { networkCeiling: words } = given;
  if (words === undefined) return {};
  if (words === null) return { networkCeiling: null };
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string'))
    throw new PlatformError('invalid_request', 'networkCeiling: must be a list of texts', {
      details: { field: 'networkCeiling' },
    });
  parseCeiling(words);
  return { networkCeiling: words };
}
