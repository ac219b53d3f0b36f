import type { Database } from '../store/database.ts';
import { hasUserBeside } from '../store/users.ts';
import { DEVELOPER_EMAIL } from './principal.ts';

/** Whether anybody has an account, beside whom development mode takes everybody for. */
export async function hasPeople(db: Database): Promise<boolean> {
  return await hasUserBeside(db, DEVELOPER_EMAIL);
}
