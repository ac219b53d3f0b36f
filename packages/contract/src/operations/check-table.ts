import { compile, type Validator } from '../schema/compile.ts';
import { ResultTable } from './code-results.ts';

let validator: Validator | undefined;

/** Whether the value has the documented shape of `TABLE_TYPE`. */
export function isResultTable(value: unknown): boolean {
  validator ??= compile(ResultTable);
  return validator.check(value);
}
