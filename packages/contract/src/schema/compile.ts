import type { Static, TSchema } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import type * as schemas from 'typebox/schema';

type Compiler = typeof schemas;

let compiler: Compiler | undefined;

/** Checks values against a schema and lists what is wrong with them. */
export interface Validator<T = unknown> {
  check(value: unknown): value is T;
  errors(value: unknown): readonly TLocalizedValidationError[];
}

/** Compiles a schema. Takes milliseconds: keep the validator for repeated checks. */
export function compile<T extends TSchema>(schema: T): Validator<Static<T>> {
  const validator = loadCompiler().Compile(schema);
  return {
    check: (value): value is Static<T> => validator.Check(value),
    errors: (value) => validator.Errors(value)[1],
  };
}

/**
 * Loads the schema compiler at its first use, because a server checks nothing before it listens. Call it early in a process that
 * cannot read the files later, or that is idle. Only this needs Node: a browser can load the rest of the contract.
 */
export function loadCompiler(): Compiler {
  // The type is that of this module.
  compiler ??= process.getBuiltinModule('node:module').createRequire(import.meta.url)(
    'typebox/schema',
  ) as Compiler;
  return compiler;
}
