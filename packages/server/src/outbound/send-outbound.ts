import { lookup as lookUp, type LookupAddress, type LookupAllOptions, type LookupOptions } from 'node:dns';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { request as requestSecure } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { request as requestPlain } from '@svc/contract/node-http';
import { contains, embeddedIpv4, isPublicEverywhere, parseAddress } from '@svc/engine/policy';

/** Rules for requests to addresses that organizations configure: they must not reach the operator's network. */
export interface OutboundRules {
  /** Set by the operator: loopback, private networks and HTTP without TLS are allowed too. */
  readonly mayReachInside: boolean;
}

export interface OutboundRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  /** From the resolution of the name to the last byte. */
  readonly timeoutMs: number;
  /** Bytes beyond it are not read. */
  readonly maxAnswerBytes: number;
  readonly signal?: AbortSignal;
}

export interface OutboundAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The answer was longer than `maxAnswerBytes`. */
  readonly isCut: boolean;
}

/** Limit of answers with 1xx before the final one, because each is parsed on the server's only thread. */
const MAX_INTERIM_ANSWERS = 16;

/** Why nothing was sent, or no answer came; its message may be shown to the user who configured the address. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
}

/** The problem with an address that can be seen before anything is sent; null: none. */
export function flawOfTarget(url: URL, { mayReachInside }: OutboundRules): string | null {
  if (url.protocol !== 'https:' && !(mayReachInside && url.protocol === 'http:'))
    return 'must begin with https://';
  if (url.username !== '' || url.password !== '') return 'must not hold a user or a password';
  const host = hostOf(url);
  if (isIP(host) !== 0 && !mayReachInside && isInsideHere(host))
    return `must not lead to ${host}, which is no public address`;
  return null;
}

/** Redirects are not followed: the receiver would choose the next address. @throws OutboundError */
export async function sendOutbound(rules: OutboundRules, asked: OutboundRequest): Promise<OutboundAnswer> {
  const { url } = asked;
  const flaw = flawOfTarget(url, rules);
  if (flaw !== null) throw new OutboundError(`${url.origin} ${flaw}`);
  const timeout = AbortSignal.timeout(asked.timeoutMs);
  const signal = asked.signal === undefined ? timeout : AbortSignal.any([timeout, asked.signal]);
  try {
    return await exchange(rules, asked, signal);
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    if (timeout.aborted) throw new OutboundError(`${url.host} did not answer within ${asked.timeoutMs} ms`);
    throw new OutboundError(`${url.host} could not be asked: ${reasonOf(error)}`, { cause: error });
  }
}

async function exchange(
  rules: OutboundRules,
  { url, method, headers, body, maxAnswerBytes }: OutboundRequest,
  signal: AbortSignal,
): Promise<OutboundAnswer> {
  return await new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? requestSecure : requestPlain;
    const sent = request(
      url,
      {
        method,
        headers: {
          'user-agent': 'svc',
          ...headers,
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
        },
        // A connection each: a pooled one was checked for another name.
        agent: false,
        signal,
        ...(rules.mayReachInside ? {} : { lookup: lookUpPublic }),
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let length = 0;
        const end = (isCut: boolean) =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: Buffer.concat(chunks).subarray(0, maxAnswerBytes),
            isCut,
          });
        answer.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          if (length <= maxAnswerBytes) return;
          end(true);
          answer.destroy();
        });
        answer.on('end', () => end(false));
        answer.on('error', reject);
        answer.on('close', () => reject(new Error('the answer ended early')));
      },
    );
    let interim = 0;
    sent.on('information', () => {
      interim += 1;
      if (interim <= MAX_INTERIM_ANSWERS) return;
      sent.destroy(new OutboundError(`${url.host} sent more than ${MAX_INTERIM_ANSWERS} interim answers`));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Connects to the address that was checked, so a name that resolves differently a moment later (DNS rebinding) gains nothing. */
const lookUpPublic: LookupFunction = (hostname, options: LookupOptions, callback) => {
  const all: LookupAllOptions = { ...options, all: true };
  lookUp(hostname, all, (error, found: LookupAddress[]) => {
    const open = error === null ? found.filter(({ address }) => !isInsideHere(address)) : [];
    const [first] = open;
    if (error !== null) return callback(error, []);
    if (first === undefined)
      return callback(new OutboundError(`${hostname} leads to no public address; only those are asked`), []);
    if (options.all === true) callback(null, open);
    else callback(null, first.address, first.family);
  });
};

/** Networks that this host is part of are internal, independent of their range, and of the translator that an address leads through. */
function isInsideHere(text: string): boolean {
  const named = parseAddress(text);
  if (named === null || !isPublicEverywhere(named)) return true;
  const address = embeddedIpv4(named) ?? named;
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .some(({ address: own, cidr }) => {
      const base = parseAddress(own);
      return base !== null && contains({ ...base, prefixLength: Number(cidr?.split('/')[1]) }, address);
    });
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
