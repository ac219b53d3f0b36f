import type { TLocalizedValidationError } from 'typebox/error';

/** Where a value breaks its schema, as a caller would write the place, and what is wrong there. */
export interface Problem {
  readonly field: string;
  readonly reason: string;
}

/** The deepest problem says most: a failed union reports the union and every branch. */
export function firstProblem(
  errors: readonly TLocalizedValidationError[],
  whole: string,
  schema: object = {},
): Problem {
  const unknown = errors.find((error) => error.keyword === 'additionalProperties');
  if (unknown !== undefined) {
    const names = unknown.params.additionalProperties.join(', ');
    return { field: join(toField(unknown.instancePath), names), reason: 'is not a known field' };
  }
  const missing = errors.find((error) => error.keyword === 'required');
  if (missing !== undefined) {
    const names = missing.params.requiredProperties.join(', ');
    return { field: join(toField(missing.instancePath), names), reason: 'is required' };
  }
  const deepest = errors.toSorted((a, b) => b.instancePath.length - a.instancePath.length)[0];
  if (deepest === undefined) return { field: whole, reason: 'is not valid' };
  return { field: toField(deepest.instancePath) || whole, reason: inWords(deepest, schema) };
}

/** A pattern says little to people; the description of the field says what it means. */
function inWords({ keyword, schemaPath, message }: TLocalizedValidationError, schema: object): string {
  if (keyword !== 'pattern') return message;
  const place = schemaPath
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '');
  const found = place.reduce<unknown>(
    (part, key) =>
      typeof part === 'object' && part !== null ? (part as Record<string, unknown>)[key] : undefined,
    schema,
  );
  const { description } = (typeof found === 'object' && found !== null ? found : {}) as {
    description?: unknown;
  };
  return typeof description === 'string' ? `is not valid: ${description}` : message;
}

function toField(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : join(path, part)), '');
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
