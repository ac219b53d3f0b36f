import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { JWK } from 'jose';
import { exportJWK } from 'jose/key/export';
import { generateKeyPair, type GenerateKeyPairResult } from 'jose/key/generate/keypair';
import { SignJWT } from 'jose/jwt/sign';

type Fault =
  | 'none'
  | 'other-key'
  | 'shared-secret'
  | 'unsigned'
  | 'expired'
  | 'other-audience'
  | 'other-nonce'
  | 'other-issuer'
  | 'away';

export const CLIENT = { client_id: 'svc at acme', client_secret: 's3cret/+ü' };

/** A provider that follows the standard: codes work once, with the right verifier and client secret. */
export class TestProvider {
  readonly #server: Server;
  readonly #keys: GenerateKeyPairResult;
  readonly #published: JWK;
  readonly #codes = new Map<string, URLSearchParams>();
  /** The claims in tokens; a test may change them. */
  claims: Record<string, unknown> = {};
  /** The fault in tokens. */
  fault: Fault = 'none';
  /** The codes of token requests. */
  readonly redeemed: string[] = [];

  private constructor(keys: GenerateKeyPairResult, published: JWK) {
    this.#keys = keys;
    this.#published = { ...published, kid: 'one', alg: 'ES256' };
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<TestProvider> {
    const keys = await generateKeyPair('ES256');
    const provider = new TestProvider(keys, await exportJWK(keys.publicKey));
    provider.#server.listen(0, '127.0.0.1');
    await once(provider.#server, 'listening');
    return provider;
  }

  close(): void {
    this.#server.close().closeAllConnections();
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Signs the person in. @returns the parameters that their browser comes back with */
  signIn(authorizationUrl: string): { readonly code: string; readonly state: string } {
    const query = new URL(authorizationUrl).searchParams;
    const code = createHash('sha256').update(authorizationUrl).digest('hex');
    this.#codes.set(code, query);
    return { code, state: query.get('state') ?? '' };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { issuer } = this;
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.url === '/.well-known/openid-configuration')
      send(200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize?tenant=1`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
      });
    else if (request.url?.startsWith('/authorize?') === true) {
      // Every user is signed in and redirected back.
      const asked = new URL(request.url, issuer);
      const back = new URL(asked.searchParams.get('redirect_uri') ?? issuer);
      for (const [name, value] of Object.entries(this.signIn(asked.href))) back.searchParams.set(name, value);
      response.writeHead(302, { location: back.href }).end();
    } else if (request.url === '/keys') send(200, { keys: [this.#published] });
    else if (request.url === '/token') {
      if (this.fault === 'away') return void request.socket.destroy();
      this.redeemed.push(request.headers.authorization ?? '');
      const asked = this.#take(new URLSearchParams(await text(request)));
      if (asked === undefined) send(400, { error: 'invalid_grant' });
      else send(200, { access_token: 'unused', id_token: await this.#tokenFor(asked), token_type: 'Bearer' });
    } else send(404, {});
  }

  #take(form: URLSearchParams): URLSearchParams | undefined {
    const code = form.get('code') ?? '';
    const asked = this.#codes.get(code);
    this.#codes.delete(code);
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '');
    const isRight =
      asked?.get('code_challenge') === verifier.digest('base64url') &&
      asked.get('redirect_uri') === form.get('redirect_uri');
    return isRight ? asked : undefined;
  }

  async #tokenFor(asked: URLSearchParams): Promise<string> {
    const { fault, issuer } = this;
    const claims = { nonce: fault === 'other-nonce' ? 'another' : asked.get('nonce'), ...this.claims };
    const now = Math.floor(Date.now() / 1000);
    if (fault === 'unsigned') {
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const all = { iss: issuer, aud: asked.get('client_id'), iat: now, exp: now + 60, ...claims };
      return `${part({ alg: 'none' })}.${part(all)}.`;
    }
    const isShared = fault === 'shared-secret';
    const keys = fault === 'other-key' ? await generateKeyPair('ES256') : this.#keys;
    return await new SignJWT(claims)
      .setProtectedHeader({ alg: isShared ? 'HS256' : 'ES256', kid: 'one' })
      .setIssuer(fault === 'other-issuer' ? 'https://other.example' : issuer)
      .setAudience(fault === 'other-audience' ? 'other' : (asked.get('client_id') ?? ''))
      .setIssuedAt(fault === 'expired' ? now - 7200 : now)
      .setExpirationTime(fault === 'expired' ? now - 3600 : now + 60)
      .sign(isShared ? Buffer.from(CLIENT.client_secret) : keys.privateKey);
  }
}
