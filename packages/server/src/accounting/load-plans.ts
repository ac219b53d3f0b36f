import { readFile } from 'node:fs/promises';
import { errnoOf } from '@svc/contract/errno';
import { readPlanFile } from '@svc/contract/rest';
import { EXIT } from '../host/exit-codes.ts';
import { StartError } from '../host/start-error.ts';
import type { Database } from '../store/database.ts';
import { putPlans } from '../store/plans.ts';

/** Replaces the plans in the store by those of a JSON file. @throws StartError that names every fault */
export async function loadPlans(database: Database, path: string): Promise<void> {
  const { plans, problems } = readPlanFile(parse(await read(path), path));
  if (problems.length > 0) throw new StartError(EXIT.usage, `--plans ${path}: ${problems.join('; ')}`);
  await putPlans(database, plans);
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const reason = errnoOf(error) ?? String(error);
    throw new StartError(EXIT.usage, `--plans ${path} cannot be read by the server's user: ${reason}`);
  }
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StartError(
      EXIT.usage,
      `--plans ${path} is not JSON: ${error instanceof Error ? error.message : ''}`,
    );
  }
}
