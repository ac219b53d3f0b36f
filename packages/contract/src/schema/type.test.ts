import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type as Typebox } from 'typebox';
import { compile } from './compile.ts';
import { Type } from './type.ts';

/** One of every kind, with and without options, as `build` makes them. */
function samples(build: typeof Type) {
  const field = build.String({ maxLength: 3, description: 'a field' });
  const inner = build.Object(
    { a: field, b: build.Optional(build.Integer({ minimum: 1 })), c: build.Optional(field) },
    { additionalProperties: false, description: 'an object' },
  );
  return {
    array: build.Array(field, { maxItems: 2 }),
    boolean: build.Boolean({ default: true }),
    enum: build.Enum(['a', 'b'], { description: 'a choice' }),
    integer: build.Integer(),
    literals: [build.Literal('a', { description: 'a letter' }), build.Literal(1), build.Literal(true)],
    null: build.Null(),
    number: build.Number({ maximum: 2 }),
    object: inner,
    noFields: build.Object({}),
    nothingRequired: build.Object({ a: build.Optional(inner) }),
    partial: build.Partial(inner, { additionalProperties: false }),
    records: [
      build.Record(build.String(), field),
      build.Record(build.String({ pattern: '^a$' }), inner, { additionalProperties: false }),
    ],
    tuple: build.Tuple([field, build.Null()], { description: 'two' }),
    union: build.Union([inner, build.Null()], { description: 'or nothing' }),
    unknown: build.Unknown({ description: 'anything' }),
  };
}

test('schemas are those that TypeBox builds, field for field in the same order', () => {
  // Its builder can do more than the part that we have, so it stands in for ours.
  const theirs = samples(Typebox);
  assert.equal(JSON.stringify(samples(Type), null, 1), JSON.stringify(theirs, null, 1));
});

test('every kind of schema has a sample here', () => {
  const made = new Set<string>();
  const noting = new Proxy(Type, {
    get: (target, name) => {
      made.add(String(name));
      return Reflect.get(target, name);
    },
  });
  samples(noting);
  assert.deepEqual([...made].toSorted(), Object.keys(Type).toSorted());
});

test('a field that is marked optional stays required where it was used before', () => {
  const field = Type.String();
  assert.deepEqual(Object.keys(Type.Object({ a: Type.Optional(field) })), ['type', 'properties']);
  assert.deepEqual(Type.Object({ a: field }).required, ['a']);
});

test('the first value that does not fit a schema is named', () => {
  const validator = compile(Type.Object({ size: Type.Integer({ minimum: 1 }) }));
  assert.ok(validator.check({ size: 1 }));
  const value: unknown = { size: 0 };
  assert.ok(!validator.check(value));
  const [first] = validator.errors({ size: 0 });
  assert.equal(first?.instancePath, '/size');
  assert.equal(first?.keyword, 'minimum');
});
