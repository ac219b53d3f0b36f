import type { Database } from './database.ts';
import { dialectOf } from './store-dialect.ts';

/** More than this many are forgotten together. */
const MAX_REMEMBERED = 10_000;

/**
 * Remembers what a query found for as long as nothing at all changes in the database. Where that cannot be told, and in
 * transactions, the query is run each time.
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
    // What was read before a change must not be taken for what is true after it.
    if (value !== undefined && dialectOf(db)?.changeStamp() === stamp) known.values.set(key, value);
    return value;
  };
}
