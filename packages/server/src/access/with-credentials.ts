import { PlatformError } from '@svc/contract';
import { AUTHENTICATION_REQUIRED, authenticateWithKeys, type Authenticate } from './authenticate.ts';
import { identifyByCredential, type Identify } from './principal.ts';
import { findApiKey } from '../store/api-keys-and-tokens.ts';
import type { Database } from '../store/database.ts';
import { noteUses } from './credential-uses.ts';
import { isSignedKey, verifyKey } from './signed-keys.ts';
import { verifySession } from './sessions.ts';

/** How both surfaces judge credentials: keys that this server signed, and those that its store knows. */
export function withCredentials(
  database: Database,
  signingKey: Uint8Array,
): { readonly authenticate: Authenticate; readonly identify: Identify } {
  const noteUse = noteUses(database);
  const authenticate = authenticateWithKeys(async (key) => {
    if (isSignedKey(key)) return await verifyKey(signingKey, key);
    const found = await findApiKey(database, key);
    if (found !== undefined) {
      noteUse('api_keys', found.id, found.lastUsedAt);
      return { namespace: found.organization.slug, apiKey: { id: found.id, name: found.name } };
    }
    throw new PlatformError('invalid_api_key', AUTHENTICATION_REQUIRED, { details: { reason: 'invalid' } });
  });
  const identify = identifyByCredential(database, {
    verifyKey: (key) => verifyKey(signingKey, key),
    verifySession: (token) => verifySession(signingKey, token),
    noteUse,
  });
  return { authenticate, identify };
}
