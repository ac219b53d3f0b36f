import { compile } from '../schema/compile.ts';
import { firstProblem } from '../schema/first-problem.ts';
import { REST_OPERATIONS, type RestOperationName } from '../rest/rest-operations.ts';
import type { RestOperation } from '../rest/rest-operation.ts';

/** What is wrong with an answer, as the table describes it; undefined when nothing is, or when it is a stream. */
export function problemOfOutput(name: RestOperationName, value: unknown): string | undefined {
  const { output }: RestOperation = REST_OPERATIONS[name];
  if (typeof output === 'string') return undefined;
  const validator = compile(output);
  if (validator.check(value)) return undefined;
  const { field, reason } = firstProblem(output, value, 'answer');
  return `${field} ${reason}`;
}
