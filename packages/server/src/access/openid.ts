import {
  allowInsecureRequests,
  buildAuthorizationUrl,
  ClientSecretPost,
  clockTolerance,
  Configuration,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  genericGrantRequest,
  None,
  type ClientAuth,
  type CustomFetchOptions,
  type ServerMetadata,
} from 'openid-client';
import { flawOfTarget, OutboundError, sendOutbound, type OutboundRules } from '../outbound/send-outbound.ts';

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 512 * 1024;
const CACHE_MS = 5 * 60_000;
const MAX_CACHED = 256;
const CLOCK_TOLERANCE_S = 60;
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;

/** This server's registration at a provider. */
export interface OpenIdClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | null;
}

/** The user of the browser, as the provider identifies them. */
export interface OpenIdIdentity {
  readonly subject: string;
  /** Null: the provider does not vouch for one. */
  readonly email: string | null;
  readonly name: string | null;
  readonly hasSecondFactor: boolean;
}

/** The provider cannot be asked, or its answer is wrong. The message may be shown to the user who configured it. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
}

/** Speaks OpenID Connect: the code flow with PKCE. The library checks answers and tokens; requests go through `sendOutbound`. */
export class OpenId {
  readonly #rules: OutboundRules;
  readonly #known = new Map<string, { readonly until: number; readonly metadata: ServerMetadata }>();

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
    const config = await this.#configure({ issuer, clientId, clientSecret: null });
    return buildAuthorizationUrl(config, {
      scope: 'openid email profile',
      redirect_uri: begin.redirectUri,
      state: begin.state,
      nonce: begin.nonce,
      code_challenge: begin.challenge,
      code_challenge_method: 'S256',
    }).href;
  }

  /** @throws ProviderError also when the code or the token is wrong */
  async identify(
    client: OpenIdClient,
    end: {
      readonly code: string;
      readonly verifier: string;
      readonly redirectUri: string;
      readonly nonce: string;
    },
  ): Promise<OpenIdIdentity> {
    const config = await this.#configure(client);
    // Not authorizationCodeGrant, which would send the redirect URI without its query.
    const grant = { code: end.code, code_verifier: end.verifier, redirect_uri: end.redirectUri };
    const tokens = await explain(genericGrantRequest(config, 'authorization_code', grant));
    const claims = tokens.claims();
    if (claims === undefined) throw new ProviderError('the provider gave no id_token');
    if (claims.nonce !== end.nonce)
      throw new ProviderError('the token of the provider is for another attempt');
    if (claims.sub === '') throw new ProviderError('the token of the provider has an empty sub');
    const { email, name, amr } = claims;
    return {
      subject: claims.sub,
      // An address that is not verified is only what its user typed.
      email: typeof email === 'string' && claims['email_verified'] === true ? email : null,
      name: typeof name === 'string' ? name : null,
      hasSecondFactor: Array.isArray(amr) && amr.includes('mfa'),
    };
  }

  /** Reads the provider's configuration, at most once in five minutes. @throws ProviderError */
  async discover(issuer: string): Promise<ServerMetadata> {
    const known = this.#known.get(issuer);
    if (known !== undefined && known.until > Date.now()) return known.metadata;
    const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    const options = { [customFetch]: this.#fetch, execute: this.#extensions() };
    const metadata = (await explain(discovery(url, 'svc', undefined, None(), options))).serverMetadata();
    // Exact, because identities are stored with the issuer: the library itself would accept any tenant of some providers.
    if (metadata.issuer !== issuer)
      throw new ProviderError(`the provider calls itself ${quoted(metadata.issuer)}, not "${issuer}"`);
    for (const name of ENDPOINTS) this.#requireEndpoint(name, metadata[name]);
    if (this.#known.size >= MAX_CACHED) this.#known.clear();
    this.#known.set(issuer, { until: Date.now() + CACHE_MS, metadata });
    return metadata;
  }

  async #configure({ issuer, clientId, clientSecret }: OpenIdClient): Promise<Configuration> {
    const metadata = await this.discover(issuer);
    // The default of a provider that lists no methods.
    const takesBasic =
      metadata.token_endpoint_auth_methods_supported?.includes('client_secret_basic') ?? true;
    const byPost = clientSecret === null ? None() : ClientSecretPost(clientSecret);
    const config = new Configuration(
      metadata,
      clientId,
      { [clockTolerance]: CLOCK_TOLERANCE_S },
      clientSecret !== null && takesBasic ? basic(clientSecret) : byPost,
    );
    config[customFetch] = this.#fetch;
    for (const extend of this.#extensions()) extend(config);
    return config;
  }

  /** Signatures are checked always: by default the library trusts the connection that a token came through. */
  #extensions(): ((config: Configuration) => void)[] {
    return [enableNonRepudiationChecks, ...(this.#rules.mayReachInside ? [allowInsecureRequests] : [])];
  }

  #requireEndpoint(name: string, text: string | undefined): void {
    const url = text === undefined ? null : URL.parse(text);
    const flaw = url === null ? 'is no address' : flawOfTarget(url, this.#rules);
    if (flaw !== null) throw new ProviderError(`${name} of the provider ${flaw}`);
  }

  /** For the library: only successful answers, in JSON, pass. */
  readonly #fetch = async (
    address: string,
    { method, headers, body: asked }: CustomFetchOptions,
  ): Promise<Response> => {
    const { status, body, isCut } = await sendOutbound(this.#rules, {
      url: new URL(address),
      method: method === 'POST' ? 'POST' : 'GET',
      headers: { ...headers, 'user-agent': 'svc' },
      ...(asked instanceof URLSearchParams ? { body: asked.toString() } : {}),
      timeoutMs: TIMEOUT_MS,
      maxAnswerBytes: MAX_ANSWER_BYTES,
    }).catch((error: unknown) => {
      throw error instanceof OutboundError ? new ProviderError(error.message, { cause: error }) : error;
    });
    const answer = isCut ? null : parseObject(body.toString());
    const refusal = typeof answer?.['error'] === 'string' ? `: ${quoted(answer['error'])}` : '';
    if (status !== 200)
      throw new ProviderError(`the provider answered ${status} to ${method} ${address}${refusal}`);
    if (answer === null) throw new ProviderError(`the provider answered ${method} ${address} without JSON`);
    return Response.json(answer);
  };
}

/** @throws ProviderError with the library's reason, which is in the cause of its error */
async function explain<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    if (cause instanceof ProviderError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ProviderError(`the answer of the provider is wrong: ${reason}`, { cause: error });
  }
}

/** Replaces the library's, which also escapes characters that many providers do not decode. Each part is encoded as in a form (RFC 6749, 2.3.1). */
function basic(clientSecret: string): ClientAuth {
  const encode = (text: string) => new URLSearchParams({ t: text }).toString().slice(2);
  return (_server, { client_id: clientId }, _body, headers) => {
    const credentials = Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64');
    headers.set('authorization', `Basic ${credentials}`);
  };
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
