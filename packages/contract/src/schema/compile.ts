import type { Static, TSchema } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import type * as schemas from 'typebox/schema';

type Compiler = typeof schemas;

let compiler: Compiler | undefined;

/** Tells whether a value fits a schema, and what is wrong with it. */
export interface Validator<T = unknown> {
  check(value: unknown): value is T;
  errors(value: unknown): readonly TLocalizedValidationError[];
}

/** Takes milliseconds: whoever checks often keeps what it made. */
export function compile<T extends TSchema>(schema: T): Validator<Static<T>> {
  const validator = loadCompiler().Compile(schema);
  return {
    check: (value): value is Static<T> => validator.Check(value),
    errors: (value) => validator.Errors(value)[1],
  };
}

/**
 * What turns schemas into checks is loaded with the first of them, because nobody checks anything before a server listens.
 * To be called early by whoever cannot read the files later, or has nothing else to do. This alone needs Node: a browser can
 * load the rest of the contract.
 */
export function loadCompiler(): Compiler {
  // It is the module that the type names.
  compiler ??= process.getBuiltinModule('node:module').createRequire(import.meta.url)(
    'typebox/schema',
  ) as Compiler;
  return compiler;
}
