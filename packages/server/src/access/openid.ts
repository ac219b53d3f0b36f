import { createHash, randomBytes } from 'node:crypto';
import { createLocalJWKSet } from 'jose/jwks/local';
import { jwtVerify } from 'jose/jwt/verify';
import { flawOfTarget, OutboundError, sendOutbound, type OutboundRules } from '../outbound/send-outbound.ts';

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 512 * 1024;
const CACHE_MS = 5 * 60_000;
const MAX_CACHED = 256;
const MAX_TOKEN_AGE_S = 10 * 60;
const CLOCK_TOLERANCE_S = 60;
const VERIFIER_BYTES = 32;
/** Signed by the provider's own key. A secret that we share with it would let whoever knows the secret be anybody. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

/** Who this server is to a provider. */
export interface OpenIdClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | null;
}

/** Whom the provider says that the browser belongs to. */
export interface OpenIdIdentity {
  readonly subject: string;
  /** Null: the provider does not vouch for one. */
  readonly email: string | null;
  readonly name: string | null;
  readonly hasSecondFactor: boolean;
}

interface Metadata {
  readonly authorizationEndpoint: URL;
  readonly tokenEndpoint: URL;
  readonly keysEndpoint: URL;
  readonly takesBasic: boolean;
}

/** The provider cannot be asked, or answers what no provider does. The words may be shown to whoever chose it. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
}

/** What the browser keeps until it comes back, and what the provider is shown of it beforehand (PKCE). */
export function newVerifier(): string {
  return randomBytes(VERIFIER_BYTES).toString('base64url');
}

export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/** Speaks OpenID Connect: the code flow, with a proof that who ends it began it. */
export class OpenId {
  readonly #rules: OutboundRules;
  readonly #known = new Map<string, { readonly until: number; readonly metadata: Metadata }>();

  constructor(rules: OutboundRules) {
    this.#rules = rules;
  }

  /** Where to send the browser. @throws ProviderError */
  async beginUrl(
    { issuer, clientId }: Pick<OpenIdClient, 'issuer' | 'clientId'>,
    begin: {
      readonly redirectUri: string;
      readonly state: string;
      readonly nonce: string;
      readonly challenge: string;
    },
  ): Promise<string> {
    const url = new URL((await this.discover(issuer)).authorizationEndpoint);
    const query = {
      response_type: 'code',
      scope: 'openid email profile',
      client_id: clientId,
      redirect_uri: begin.redirectUri,
      state: begin.state,
      nonce: begin.nonce,
      code_challenge: begin.challenge,
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url.href;
  }

  /** @throws ProviderError also when the code or the token is not right */
  async identify(
    client: OpenIdClient,
    end: {
      readonly code: string;
      readonly verifier: string;
      readonly redirectUri: string;
      readonly nonce: string;
    },
  ): Promise<OpenIdIdentity> {
    const metadata = await this.discover(client.issuer);
    const token = await this.#redeem(client, metadata, end);
    const keys = await this.#readJson(metadata.keysEndpoint, 'its keys');
    return await readIdentity(client, token, keys, end.nonce);
  }

  /** Asks the provider about itself, once in a while. @throws ProviderError */
  async discover(issuer: string): Promise<Metadata> {
    const known = this.#known.get(issuer);
    if (known !== undefined && known.until > Date.now()) return known.metadata;
    const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const answer = await this.#readJson(url, 'its configuration');
    if (answer['issuer'] !== issuer)
      throw new ProviderError(`the provider calls itself ${quoted(answer['issuer'])}, not "${issuer}"`);
    const methods = answer['token_endpoint_auth_methods_supported'];
    const metadata: Metadata = {
      authorizationEndpoint: this.#endpoint(answer, 'authorization_endpoint'),
      tokenEndpoint: this.#endpoint(answer, 'token_endpoint'),
      keysEndpoint: this.#endpoint(answer, 'jwks_uri'),
      // What a provider takes that does not say.
      takesBasic: !Array.isArray(methods) || methods.includes('client_secret_basic'),
    };
    if (this.#known.size >= MAX_CACHED) this.#known.clear();
    this.#known.set(issuer, { until: Date.now() + CACHE_MS, metadata });
    return metadata;
  }

  #endpoint(answer: Readonly<Record<string, unknown>>, name: string): URL {
    const text = answer[name];
    const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
    const flaw = url === undefined ? 'is no address' : flawOfTarget(url, this.#rules);
    if (url === undefined || flaw !== null) throw new ProviderError(`${name} of the provider ${flaw ?? ''}`);
    return url;
  }

  async #redeem(
    { clientId, clientSecret }: OpenIdClient,
    { tokenEndpoint, takesBasic }: Metadata,
    {
      code,
      verifier,
      redirectUri,
    }: { readonly code: string; readonly verifier: string; readonly redirectUri: string },
  ): Promise<string> {
    const isBasic = clientSecret !== null && takesBasic;
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      ...(isBasic ? {} : { client_id: clientId }),
      ...(isBasic || clientSecret === null ? {} : { client_secret: clientSecret }),
    });
    const answer = await this.#readJson(tokenEndpoint, 'a token', {
      body: form.toString(),
      headers: isBasic ? { authorization: basic(clientId, clientSecret) } : {},
    });
    const token = answer['id_token'];
    if (typeof token !== 'string') throw new ProviderError('the provider gave no id_token');
    return token;
  }

  async #readJson(
    url: URL,
    what: string,
    post?: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { status, body, isCut } = await sendOutbound(this.#rules, {
      url,
      method: post === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        ...(post === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...post?.headers,
      },
      ...(post === undefined ? {} : { body: post.body }),
      timeoutMs: TIMEOUT_MS,
      maxAnswerBytes: MAX_ANSWER_BYTES,
    }).catch((error: unknown) => {
      throw error instanceof OutboundError ? new ProviderError(error.message, { cause: error }) : error;
    });
    const parsed = isCut ? null : parseObject(body.toString());
    const refusal = parsed?.['error'];
    if (status !== 200 && typeof refusal === 'string')
      throw new ProviderError(`the provider refused ${what}: ${quoted(refusal)}`);
    if (status !== 200) throw new ProviderError(`the provider answered ${status} when asked for ${what}`);
    if (parsed === null) throw new ProviderError(`the provider gave ${what} in a form that is not JSON`);
    return parsed;
  }
}

async function readIdentity(
  { issuer, clientId }: OpenIdClient,
  token: string,
  keys: Readonly<Record<string, unknown>>,
  nonce: string,
): Promise<OpenIdIdentity> {
  const { payload } = await verify(token, keys, { issuer, audience: clientId });
  const { sub: subject, azp, aud } = payload;
  if (payload['nonce'] !== nonce) throw new ProviderError('the token of the provider is for another attempt');
  if (Array.isArray(aud) && aud.length > 1 && azp !== clientId)
    throw new ProviderError('the token of the provider is for somebody else too');
  if (subject === undefined || subject === '')
    throw new ProviderError('the token of the provider names nobody');
  const { email, name, amr } = payload;
  return {
    subject,
    // An address that nobody has confirmed is whatever its user typed.
    email: typeof email === 'string' && payload['email_verified'] === true ? email : null,
    name: typeof name === 'string' ? name : null,
    hasSecondFactor: Array.isArray(amr) && amr.includes('mfa'),
  };
}

async function verify(
  token: string,
  keys: Readonly<Record<string, unknown>>,
  who: { readonly issuer: string; readonly audience: string },
) {
  try {
    if (!Array.isArray(keys['keys'])) throw new Error('it publishes no keys');
    return await jwtVerify(token, createLocalJWKSet({ keys: keys['keys'] }), {
      ...who,
      algorithms: ALGORITHMS,
      requiredClaims: ['sub', 'exp', 'iat'],
      maxTokenAge: MAX_TOKEN_AGE_S,
      clockTolerance: CLOCK_TOLERANCE_S,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ProviderError(`the token of the provider is not right: ${reason}`, { cause: error });
  }
}

/** Each part as in a form, says the standard (RFC 6749, 2.3.1). */
function basic(clientId: string, clientSecret: string): string {
  const encode = (text: string) => new URLSearchParams({ t: text }).toString().slice(2);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')}`;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    // An object of JSON has text as keys.
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function quoted(value: unknown): string {
  return JSON.stringify(typeof value === 'string' ? value.slice(0, 200) : null);
}
