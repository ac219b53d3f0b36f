import type { Static, TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';

/**
 * Who may call an operation.
 * - `anyone`: no credential is asked for.
 * - `namespace`: a credential that reaches the `namespace` of the input.
 * - `reach`: any valid credential; the answer is limited to the namespaces it reaches, and `*` names them all.
 */
export type Access = 'anyone' | 'namespace' | 'reach';

/** One operation, independent of the transport. */
export interface Operation<Input extends TSchema = TSchema, Output extends TSchema = TSchema> {
  readonly summary: string;
  readonly access: Access;
  readonly input: Input;
  readonly output: Output;
  /** Its error codes, without those of every operation: bad input, bad credential, a bug. */
  readonly errors: readonly ErrorCode[];
}

export type InputOf<O extends Operation> = Static<O['input']>;
export type OutputOf<O extends Operation> = Static<O['output']>;
