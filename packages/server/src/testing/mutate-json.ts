import type { RandomGenerator } from './random-generator.ts';

const LONG_TEXT_CHARS = 70_000;
const DEEP = 3000;

/** Texts that are known to break programs. */
export const HOSTILE_TEXTS = [
  '',
  ' ',
  '-1',
  '9007199254740993',
  '1e999',
  'NaN',
  'null',
  '../../../../etc/passwd',
  '..',
  '/proc/self/root/etc/shadow',
  'a/../../b',
  '..\\..\\b',
  '%2e%2e%2f',
  'a\u0000b',
  '\u001b[2J\r\nX-Injected: 1',
  '\u202Egnp.exe\u200B\uFEFF',
  '\uD800',
  "' OR 1=1 --",
  '${jndi:x}',
  '__proto__',
  'constructor',
  'İ'.repeat(300),
];

/** Raw replacements for a value; no JSON library would write some of them. */
const TOKENS: readonly string[] = [
  'null',
  'true',
  '0',
  '-0',
  '-1',
  '0.5',
  '9007199254740992',
  '9007199254740993',
  '-9223372036854775809',
  '1e308',
  '1e999',
  '-1e999',
  'NaN',
  '[]',
  '{}',
  '[null]',
  '{"__proto__":{"isAdmin":true}}',
  '{"toString":1,"length":-1}',
  `"${'x'.repeat(LONG_TEXT_CHARS)}"`,
  `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`,
  '{"a":'.repeat(DEEP) + '1' + '}'.repeat(DEEP),
  String.raw`"\ud800"`,
  ...HOSTILE_TEXTS.map((text) => JSON.stringify(text)),
];

/** Fields outside of every schema, and those that JavaScript objects inherit. */
const EXTRA_FIELDS = ['"extra":1', '"__proto__":{"x":1}', '"constructor":{"prototype":{}}', '"":null'];

/** JSON text of a value with one random fault: in the whole, a field or an item. */
export function mutateJson(value: unknown, dice: RandomGenerator): string {
  const target = { left: dice.below(countOf(value)) };
  // The whole value cannot be left out.
  return write(value, target, dice) ?? '';
}

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, below) => sum + countOf(below), 1);
}

/** Undefined: it is left out. */
function write(value: unknown, target: { left: number }, dice: RandomGenerator): string | undefined {
  const isHere = target.left === 0;
  target.left -= 1;
  if (typeof value !== 'object' || value === null) return isHere ? replace(dice) : JSON.stringify(value);
  // Replacing an object hides all of its fields, so mostly the fields are changed.
  if (isHere && dice.below(4) === 0) return replace(dice);
  if (Array.isArray(value)) {
    const items = value.map((item) => write(item, target, dice)).filter((item) => item !== undefined);
    if (isHere) items.push(...Array.from({ length: dice.oneOf([1, 5000]) }, () => items[0] ?? '0'));
    return `[${items.join(',')}]`;
  }
  const fields = Object.entries(value)
    .map(([name, field]) => [JSON.stringify(name), write(field, target, dice)] as const)
    .filter(([, field]) => field !== undefined)
    .map(([name, field]) => `${name}:${field}`);
  if (isHere) fields.push(dice.below(2) === 0 ? dice.oneOf(EXTRA_FIELDS) : repeated(fields, dice));
  return `{${fields.join(',')}}`;
}

function replace(dice: RandomGenerator): string | undefined {
  return dice.below(8) === 0 ? undefined : dice.oneOf(TOKENS);
}

/** Repeats a field with another value. */
function repeated(fields: readonly string[], dice: RandomGenerator): string {
  if (fields.length === 0) return dice.oneOf(EXTRA_FIELDS);
  const name = /^"(?:[^"\\]|\\.)*"/.exec(dice.oneOf(fields))?.[0] ?? '"extra"';
  return `${name}:${dice.oneOf(TOKENS)}`;
}
