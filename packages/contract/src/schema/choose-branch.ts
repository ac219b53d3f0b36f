import { fieldAt, isFields, type JsonSchema, type Problem } from './json-schema.ts';

/** Chooses the branch of a union that a caller most likely meant with an invalid value, or says why it fits none. */
export function chooseBranch(
  branches: readonly JsonSchema[],
  value: unknown,
  path: string,
): { readonly branch: JsonSchema } | Problem {
  const all = branches.flatMap(flatten);
  const [first, ...others] = all.filter((branch) => isOfKind(branch, value));
  if (first === undefined) {
    const kinds = [...new Set(all.map(({ type }) => type ?? 'another value'))];
    return { field: path, reason: `must be ${kinds.join(' or ')}` };
  }
  if (others.length === 0 || !isFields(value)) return { branch: first };
  return chooseByTag([first, ...others], value, path) ?? chooseByFields([first, ...others], value, path);
}

function flatten(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(flatten);
}

function isOfKind({ type, enum: values }: JsonSchema, value: unknown): boolean {
  if (values !== undefined) return values.some((item) => kindOf(item) === kindOf(value));
  return type === undefined || (type === 'integer' ? 'number' : type) === kindOf(value);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** For branches that differ in the value of one field, such as `type`. Undefined: they do not. */
function chooseByTag(
  branches: readonly JsonSchema[],
  value: Readonly<Record<string, unknown>>,
  path: string,
): { readonly branch: JsonSchema } | Problem | undefined {
  const tag = tagOf(branches[0]);
  if (tag === undefined) return undefined;
  const field = fieldAt(path, tag);
  const given = value[tag];
  if (given === undefined) return { field, reason: 'is required' };
  const branch = branches.find((item) => valuesOf(item, tag).includes(given));
  if (branch !== undefined) return { branch };
  const known = branches.flatMap((item) => valuesOf(item, tag)).map((item) => JSON.stringify(item));
  return { field, reason: `must be one of ${known.join(', ')}` };
}

function tagOf(branch: JsonSchema | undefined): string | undefined {
  const required = branch?.required ?? [];
  return required.find((name) => branch !== undefined && valuesOf(branch, name).length > 0);
}

function valuesOf({ properties = {} }: JsonSchema, name: string): readonly unknown[] {
  const field = properties[name];
  return field?.enum ?? (field?.const === undefined ? [] : [field.const]);
}

/** For branches that differ in the fields that they have. */
function chooseByFields(
  branches: readonly JsonSchema[],
  value: Readonly<Record<string, unknown>>,
  path: string,
): { readonly branch: JsonSchema } | Problem {
  const branch = branches.find(({ required = [] }) => required.some((name) => value[name] !== undefined));
  if (branch !== undefined) return { branch };
  const names = branches.flatMap(({ required = [] }) => required);
  return { field: path, reason: `must have one of the fields ${names.join(', ')}` };
}
