import { PlatformError } from '../errors.ts';
import { compile, type Validator } from '../schema/compile.ts';
import { firstProblem } from '../schema/first-problem.ts';
import { nameProblem } from './check-name.ts';
import { OPERATIONS, type OperationInput, type OperationName } from './operations.ts';
import { ALL_NAMESPACES } from './sandbox-reference.ts';

const validators = new Map<OperationName, Validator>();

/**
 * Checks what a caller sent. Names come first, because their messages are public.
 * @throws PlatformError `invalid_request` with details `{field, reason}`
 */
export function checkInput<Name extends OperationName>(name: Name, value: unknown): OperationInput<Name> {
  if (typeof value === 'object' && value !== null) checkNames(name, value);
  const validator = validatorOf(name);
  if (!validator.check(value)) {
    const { field, reason } = firstProblem(OPERATIONS[name].input, value, 'params');
    throw new PlatformError('invalid_request', `Invalid params: ${field} ${reason}`, {
      details: { field, reason },
    });
  }
  // The schema that was just checked is the one that this type is derived from.
  return value as OperationInput<Name>;
}

function checkNames(operation: OperationName, input: object): void {
  const { sandbox, namespace } = input as { sandbox?: unknown; namespace?: unknown };
  if (typeof sandbox === 'string') refuse('sandbox', nameProblem('Sandbox name', sandbox));
  const meansAll = namespace === ALL_NAMESPACES && OPERATIONS[operation].access === 'reach';
  if (typeof namespace === 'string' && !meansAll) refuse('namespace', nameProblem('Namespace', namespace));
}

function refuse(field: string, problem: string | undefined): void {
  if (problem === undefined) return;
  throw new PlatformError('invalid_request', problem, { details: { field, reason: problem } });
}

function validatorOf(name: OperationName): Validator {
  const known = validators.get(name);
  if (known !== undefined) return known;
  const compiled = compile(OPERATIONS[name].input);
  validators.set(name, compiled);
  return compiled;
}
