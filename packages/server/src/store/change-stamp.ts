import type { Database } from './database.ts';
import { dialectOf } from './store-dialect.ts';

/** The cache is emptied when it has more entries than this. */
const MAX_REMEMBERED = 10_000;

/**
 * Caches the result of a query until the database changes. Runs the query each time where changes cannot be detected,
 * and in transactions.
 */
export function rememberUntilChange<Value>(
  load: (db: Database, key: string) => Promise<Value>,
): (db: Database, key: string) => Promise<Value> {
  const remembered = new WeakMap<Database, { stamp: string; readonly values: Map<string, Value> }>();
  return async (db, key) => {
    const stamp = dialectOf(db)?.changeStamp();
    if (stamp === undefined) return await load(db, key);
    let known = remembered.get(db);
    if (known?.stamp !== stamp || known.values.size >= MAX_REMEMBERED) {
      known = { stamp, values: new Map() };
      remembered.set(db, known);
    }
    const found = known.values.get(key);
    if (found !== undefined) return found;
    const value = await load(db, key);
    // Cached only if the database did not change during the query; the result may be outdated otherwise.
    if (value !== undefined && dialectOf(db)?.changeStamp() === stamp) known.values.set(key, value);
    return value;
  };
}
