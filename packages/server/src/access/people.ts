import type { Database } from '../store/database.ts';
import { hasUserBeside } from '../store/users.ts';
import { DEVELOPER_EMAIL } from './principal.ts';

/** Whether there is an account besides the one of development mode. */
export async function hasPeople(db: Database): Promise<boolean> {
  return await hasUserBeside(db, DEVELOPER_EMAIL);
}
