import { Sandbox, type Client } from '@svc/sdk';
import { print, printJson } from '../terminal/print.ts';
import { reportFailure } from '../terminal/report-error.ts';

/** Runs an action for each named sandbox; a failure does not stop the others. */
export async function eachSandbox(
  client: Client,
  names: readonly string[],
  isJson: boolean,
  work: (sandbox: Sandbox) => Promise<object>,
): Promise<void> {
  const done: object[] = [];
  for (const name of names) {
    try {
      done.push(await work(await Sandbox.connect(name, { client })));
      if (!isJson) print(name);
    } catch (error) {
      process.exitCode = reportFailure(error, { isJson, name });
    }
  }
  if (isJson) printJson(done);
}
