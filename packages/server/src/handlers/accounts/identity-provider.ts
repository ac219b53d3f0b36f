import { ProviderError } from '../../access/openid.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { flawOfTarget } from '../../outbound/send-outbound.ts';
import {
  clientSecretContext,
  findIdentityProvider,
  putIdentityProvider,
  removeIdentityProvider,
  type IdentityProviderRecord,
} from '../../store/identity-providers.ts';
import { noProvider, type ProviderSessionParts } from './provider-sessions.ts';

type Names = Extract<keyof RestHandlers, `identityProvider.${string}`>;

/** The OpenID provider that authenticates the members of an organization. */
export function identityProviderHandlers(parts: ProviderSessionParts): Pick<RestHandlers, Names> {
  const { database, sealer } = parts;
  return {
    'identityProvider.get': async (_input, { organization }) => {
      const found = await findIdentityProvider(database, organization.id);
      if (found === undefined) throw noProvider();
      return viewProvider(found);
    },
    'identityProvider.put': async ({ body }, call) => {
      const { organization } = call;
      await requireProvider(parts, body.issuer_url);
      const put = await call.commit(async ({ db, record }) => {
        const former = await findIdentityProvider(db, organization.id);
        const secret = sealedSecret(body.client_secret, former);
        const { issuer_url: issuer, client_id: clientId, allowed_domains: emailDomains = [] } = body;
        const provider = await putIdentityProvider(db, {
          organizationId: organization.id,
          issuer,
          clientId,
          sealedClientSecret: secret,
          emailDomains,
        });
        const payload = { issuer_url: issuer, client_id: clientId, allowed_domains: emailDomains };
        await record({ type: 'identity_provider_set', category: 'org', payload });
        return provider;
      }, viewProvider);
      return viewProvider(put);

      function sealedSecret(given: string | null | undefined, former: IdentityProviderRecord | undefined) {
        if (given === null) return null;
        if (given !== undefined) return sealer.seal(given, clientSecretContext(organization.id));
        // A new provider must not receive the secret of the previous one.
        if (former !== undefined && former.issuer === body.issuer_url) return former.sealedClientSecret;
        throw badField('client_secret', 'is needed; null says that the provider asks for none');
      }
    },
    'identityProvider.remove': async (_input, call) => await remove(call),
  };
}

async function remove(call: RestCall): Promise<{ message: string }> {
  const answer = () => ({ message: 'Sign-in at the identity provider is off' });
  await call.commit(async ({ db, record }) => {
    if (!(await removeIdentityProvider(db, call.organization.id))) throw noProvider();
    await record({ type: 'identity_provider_removed', category: 'org', payload: {} });
  }, answer);
  return answer();
}

/** Checks the settings when they are set, so that errors do not surface at the next sign-in. */
async function requireProvider({ openId, outbound }: ProviderSessionParts, issuer: string): Promise<void> {
  if (!URL.canParse(issuer)) throw badField('issuer_url', 'must be an address');
  const flaw = flawOfTarget(new URL(issuer), outbound);
  if (flaw !== null) throw badField('issuer_url', flaw);
  try {
    await openId.discover(issuer);
  } catch (error) {
    if (error instanceof ProviderError) throw badField('issuer_url', `cannot be used: ${error.message}`);
    throw error;
  }
}

function viewProvider(record: IdentityProviderRecord) {
  return {
    issuer_url: record.issuer,
    client_id: record.clientId,
    has_client_secret: record.sealedClientSecret !== null,
    allowed_domains: [...record.emailDomains],
    created_at: record.createdAt,
    updated_at: record.updatedAt,
  };
}
