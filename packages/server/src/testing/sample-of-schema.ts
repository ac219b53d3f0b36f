import type { RandomGenerator } from './random-generator.ts';

/** The keywords of a schema that matter for a sample. */
interface Keywords {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Keywords[];
  readonly items?: Keywords | readonly Keywords[];
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Keywords>>;
  readonly patternProperties?: Readonly<Record<string, Keywords>>;
  readonly required?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
}

/** Texts for every format and pattern of the contract; a new pattern needs a new text here. */
const TEXTS = [
  'sample',
  '/sample',
  'SIGTERM',
  '2026-01-01T00:00:00Z',
  '00000000-0000-4000-8000-000000000000',
  'https://example.com/a',
  'sample@example.com',
  'sub.example.com',
  '0',
  'stdout',
  '10.0.0.0/8',
  '8080',
  'YQ',
  '0-0',
  'KEY=value',
  '0644',
];

/** Fields with rules beyond their schema. */
const BY_NAME: Readonly<Record<string, unknown>> = {
  language: 'python',
  public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOvwFpajiI+23NG+zkM6rOoPYmA5EQSWHIDdZg/RHXQy',
  registry_host: 'registry.example',
  namespace: 'default',
  sandbox: 'target',
  'x-svc-file-path': Buffer.from('a.txt').toString('base64url'),
};

/** A value that fits a schema, with some of its optional fields. */
export function sampleOf(schema: object, dice: RandomGenerator): unknown {
  return sample(schema, dice);
}

function sample(schema: Keywords, dice: RandomGenerator): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return dice.oneOf(schema.enum);
  if (schema.anyOf !== undefined) return sample(dice.oneOf(schema.anyOf), dice);
  if (schema.type === 'object') return sampleObject(schema, dice);
  if (schema.type === 'array') return sampleArray(schema, dice);
  if (schema.type === 'string') return sampleText(schema);
  if (schema.type === 'boolean') return dice.below(2) === 0;
  if (schema.type === 'integer' || schema.type === 'number') return Math.max(schema.minimum ?? 1, 1);
  return null;
}

function sampleObject(
  { properties = {}, patternProperties = {}, required = [] }: Keywords,
  dice: RandomGenerator,
) {
  const known = Object.entries(properties)
    .filter(([name]) => required.includes(name) || dice.below(2) === 0)
    .map(([name, field]) => [name, BY_NAME[name] ?? sample(field, dice)]);
  const free = Object.entries(patternProperties).map(([pattern, value]) => [
    sampleText({ pattern }),
    sample(value, dice),
  ]);
  return Object.fromEntries([...known, ...free]) as Record<string, unknown>;
}

function sampleArray({ items = {}, minItems = 1 }: Keywords, dice: RandomGenerator): unknown[] {
  // A list of schemas is one schema for each item.
  if (Array.isArray(items)) return items.map((item: Keywords) => sample(item, dice));
  return Array.from({ length: Math.max(minItems, 1) }, () => sample(items as Keywords, dice));
}

function sampleText({ pattern = '', minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Keywords): string {
  const form = new RegExp(pattern, 'u');
  const fits = (text: string) => form.test(text) && text.length >= minLength && text.length <= maxLength;
  const found = TEXTS.find(fits);
  if (found === undefined) throw new Error(`no text of sample-of-schema.ts fits ${pattern}`);
  return found;
}
