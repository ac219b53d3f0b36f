import { compile } from '../schema/compile.ts';
import { firstProblem } from '../schema/first-problem.ts';
import { REST_OPERATIONS, type RestOperationName } from '../rest/rest-operations.ts';
import type { RestOperation } from '../rest/rest-operation.ts';

/** The first problem of an answer against the schema of its operation; undefined when there is none, or for a stream. */
export function problemOfOutput(name: RestOperationName, value: unknown): string | undefined {
  const { output }: RestOperation = REST_OPERATIONS[name];
  if (typeof output === 'string') return undefined;
  const validator = compile(output);
  if (validator.check(value)) return undefined;
  const { field, reason } = firstProblem(output, value, 'answer');
  return `${field} ${reason}`;
}
