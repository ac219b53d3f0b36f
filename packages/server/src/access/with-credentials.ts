import { PlatformError } from '@svc/contract';
import { AUTHENTICATION_REQUIRED, authenticateWithKeys, type Authenticate } from './authenticate.ts';
import { identifyByCredential, type Identify } from './principal.ts';
import { findApiKey, touchCredentials, type CredentialTable } from '../store/api-keys-and-tokens.ts';
import type { Database } from '../store/database.ts';
import { isSignedKey, verifyKey } from './signed-keys.ts';
import { signSession, verifySession, type SignSession } from './sessions.ts';

/** The shortest interval between two writes of a credential's last use. */
const MIN_INTERVAL_MS = 60_000;
const WRITE_AFTER_MS = 500;

/** Checks credentials for JSON-RPC and MCP: keys that this server signed, and keys in the store. */
export function withCredentials(
  database: Database,
  signingKey: Uint8Array,
): {
  readonly authenticate: Authenticate;
  readonly identify: Identify;
  readonly signSession: SignSession;
} {
  const noteUse = noteUses(database);
  const authenticate = authenticateWithKeys(async (key) => {
    if (isSignedKey(key)) return await verifyKey(signingKey, key);
    const found = await findApiKey(database, key);
    if (found !== undefined) {
      noteUse('api_keys', found.id, found.lastUsedAt);
      return {
        namespace: found.organization.slug,
        apiKey: { id: found.id, name: found.name, createdBy: found.createdBy },
      };
    }
    throw new PlatformError('invalid_api_key', AUTHENTICATION_REQUIRED, { details: { reason: 'invalid' } });
  });
  const identify = identifyByCredential(database, {
    verifyKey: (key) => verifyKey(signingKey, key),
    verifySession: (token) => verifySession(signingKey, token),
    noteUse,
  });
  return { authenticate, identify, signSession: (session) => signSession(signingKey, session) };
}

type NoteUse = (table: CredentialTable, id: string, lastUsedAt: string | null) => void;

/**
 * Writes the last use of credentials some time after the answer, so that no caller waits for it. A write that is lost, because the
 * process ended or the disk was full, is made up for by the next use.
 */
function noteUses(database: Database): NoteUse {
  const waiting: Record<CredentialTable, Set<string>> = { api_keys: new Set(), tokens: new Set() };
  let isScheduled = false;
  const write = async () => {
    isScheduled = false;
    const now = new Date().toISOString();
    for (const table of ['api_keys', 'tokens'] as const) {
      const ids = [...waiting[table]];
      waiting[table].clear();
      if (ids.length > 0) await touchCredentials(database, table, ids, now);
    }
  };
  return (table, id, lastUsedAt) => {
    if (lastUsedAt !== null && Date.now() - Date.parse(lastUsedAt) < MIN_INTERVAL_MS) return;
    waiting[table].add(id);
    if (isScheduled) return;
    isScheduled = true;
    // The store may be closed or full by then; losing this write does no harm.
    setTimeout(() => void write().catch(() => undefined), WRITE_AFTER_MS).unref();
  };
}
