import { Transform } from 'node:stream';
import { BlockedRequest } from './blocked-request.ts';
import { toBytes } from './latin1.ts';
import type { Part } from './placeholder-scan.ts';
import { Placeholders } from './placeholders.ts';
import {
  strictest,
  actionFor,
  type Blocking,
  type Identity,
  type SecretSettings,
  type SecretAction,
} from './secret-settings.ts';

/** A request without its body. Bytes are characters (latin1), as in Node's HTTP API. */
export interface RequestHead {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Treatment of the body: streamed, through filters if needed, or held until it is complete and its length known. */
export type BodyPlan =
  | {
      readonly kind: 'stream';
      readonly filters: () => readonly Transform[];
      /** Nothing, not even the head, is sent before the body is complete, or the part that can be held was checked. */
      readonly isHeldFirst: boolean;
    }
  | { readonly kind: 'hold'; readonly rewrite: (body: Buffer) => Buffer };

export const MAX_HELD_BYTES = 16 * 1024 * 1024;
/** Limits for the growth by values: of a head, of a held body, and of each chunk of a streamed one. */
const MAX_ADDED_BYTES = 1024 * 1024;

type Replace = (index: number, original: string) => string;
/** @returns the inserted value. @throws BlockedRequest over the limit */
type Charge = (index: number, original: string, filled: string) => string;

/** Finds placeholders in the requests of one connection and replaces them by their values where that is allowed. */
export class RequestFilter {
  readonly #settings: SecretSettings;
  readonly #identity: Identity;
  readonly #placeholders: Placeholders;
  readonly #actions: readonly SecretAction[];

  constructor(settings: SecretSettings, identity: Identity, placeholders = placeholdersOf(settings)) {
    this.#settings = settings;
    this.#identity = identity;
    this.#placeholders = placeholders;
    this.#actions = settings.entries.map((secret) => actionFor(secret, settings, identity));
  }

  /** The head to send. @throws BlockedRequest */
  head(head: RequestHead): RequestHead {
    if (this.#settings.entries.length === 0) return head;
    this.#refuse(head, [
      head.path,
      ...head.headers.flatMap(([name, value]) => [name, value, decodedBasic(value)?.text ?? '']),
    ]);
    const charge = this.#budget(head);
    return {
      method: head.method,
      path: this.#fillQuery(head.path, charge),
      headers: head.headers.map(
        ([name, value]) => [name, this.#fillHeader(head, name, value, charge)] as const,
      ),
    };
  }

  /** Trailers are treated like headers. @throws BlockedRequest */
  trailers(head: RequestHead, trailers: RequestHead['headers']): RequestHead['headers'] {
    return this.head({ ...head, path: '/', headers: trailers }).headers;
  }

  /** @throws BlockedRequest when the body would have to be rewritten and is too large. */
  body(head: RequestHead, { isHttp2 }: { readonly isHttp2: boolean }): BodyPlan {
    // Compressed bodies are not searched, so no placeholder in them is ever replaced.
    const isEncoded = headerOf(head, 'content-encoding').some((value) => value.toLowerCase() !== 'identity');
    const isFilled = this.#settings.entries.map(
      (secret, index) => this.#actions[index] === 'substitute' && secret.injection.body,
    );
    const isSought = this.#actions.map(
      (action, index) =>
        (action !== 'leave' && action !== 'substitute') ||
        (action === 'substitute' && (isHttp2 || isFilled[index] === true)),
    );
    const [length] = headerOf(head, 'content-length');
    // A host that must not see a placeholder gets nothing of a request that contains one anywhere, also in its body or trailers.
    const hasTrailers = isHttp2 || headerOf(head, 'transfer-encoding').length > 0;
    const isHeldFirst =
      this.#actions.some(isBlocking) && (hasTrailers || (length !== undefined && !isEncoded));
    if (isEncoded || !isSought.includes(true)) return { kind: 'stream', filters: () => [], isHeldFirst };
    const replace: Replace = (index, original) => {
      const action = this.#actions[index] ?? 'block_and_log';
      if (action === 'leave') return original;
      if (action !== 'substitute') throw this.#blocked(head, [index], action);
      // Over HTTP/2 Content-Length may have been sent already, so the body is not rewritten.
      if (isHttp2) throw this.#blocked(head, [index], 'block_and_log');
      return isFilled[index] === true
        ? encodeFor(head, this.#settings.entries[index]?.value ?? '')
        : original;
    };
    if (length === undefined || isHttp2 || !isFilled.includes(true))
      return { kind: 'stream', filters: () => [this.#filter(head, replace)], isHeldFirst };
    if (Number(length) > MAX_HELD_BYTES) throw this.#blocked(head, [], 'block_and_log');
    return {
      kind: 'hold',
      rewrite: (body) =>
        Buffer.from(this.#replaceAll(body.toString('latin1'), replace, this.#budget(head)), 'latin1'),
    };
  }

  #refuse(head: RequestHead, texts: readonly string[]): void {
    const found = [...new Set(texts.flatMap((text) => this.#placeholders.allIn(text)))];
    const violations = found.filter((index) => isBlocking(this.#actions[index]));
    if (violations.length === 0) return;
    throw this.#blocked(
      head,
      violations,
      strictest(violations.map((index) => this.#actions[index]).filter(isBlocking)),
    );
  }

  #blocked({ method, path }: RequestHead, indexes: readonly number[], action: Blocking): BlockedRequest {
    const names = indexes.map((index) => this.#settings.entries[index]?.envVar ?? '');
    // Without the query: it may hold data that must not be logged.
    return new BlockedRequest({
      action,
      method,
      path: path.replace(/[?#].*$/s, ''),
      host: this.#identity.host,
      envVars: names,
    });
  }

  #fillHeader(head: RequestHead, name: string, value: string, charge: Charge): string {
    const basic = name.toLowerCase() === 'authorization' ? decodedBasic(value) : null;
    if (basic !== null) {
      const filled = this.#fill(basic.text, 'basicAuth', charge, (secret) => secret);
      return filled === basic.text
        ? value
        : `${basic.scheme}${Buffer.from(filled, 'latin1').toString('base64')}`;
    }
    return this.#fill(value, 'headers', charge, (secret, index) => {
      const { headerFields } = this.#settings.entries[index]?.injection ?? {};
      if (headerFields?.includes(name.toLowerCase()) === false) return null;
      // oxlint-disable-next-line no-control-regex
      if (/[\0\r\n]/.test(secret)) throw this.#blocked(head, [index], 'block_and_log');
      return secret;
    });
  }

  #fillQuery(path: string, charge: Charge): string {
    const start = path.indexOf('?');
    if (start < 0) return path;
    const replace: Replace = (index, original) => {
      const secret = this.#settings.entries[index];
      const isFilled = this.#actions[index] === 'substitute' && secret?.injection.queryParams === true;
      return isFilled ? encodeURIComponent(secret.value) : original;
    };
    return path.slice(0, start) + this.#replaceAll(path.slice(start), replace, charge);
  }

  /** Replaces exact occurrences of the placeholder; one for which `use` returns null stays. */
  #fill(
    text: string,
    place: 'headers' | 'basicAuth',
    charge: Charge,
    use: (value: string, index: number) => string | null,
  ): string {
    const replace: Replace = (index, original) => {
      const secret = this.#settings.entries[index];
      if (this.#actions[index] !== 'substitute' || secret?.injection[place] !== true) return original;
      const filled = original === toBytes(secret.placeholder) ? use(secret.value, index) : null;
      return filled === null ? original : toBytes(filled);
    };
    return this.#replaceAll(text, replace, charge);
  }

  /** Limits the growth of a text by short placeholders with long values. */
  #budget(head: RequestHead): Charge {
    let added = 0;
    return (index, original, filled) => {
      added += Math.max(0, filled.length - original.length);
      if (added > MAX_ADDED_BYTES) throw this.#blocked(head, [index], 'block_and_log');
      return filled;
    };
  }

  #replaceAll(text: string, replace: Replace, charge: Charge): string {
    return this.#placeholders
      .partsOf(text)
      .map((part) => this.#partOf(part, replace, charge))
      .join('');
  }

  #partOf(part: Part, replace: Replace, charge: Charge): string {
    if (part.kind === 'clear') return part.text;
    return charge(part.index, part.text, replace(part.index, part.text));
  }

  /** Passes bytes on as soon as they cannot be part of a placeholder any more. */
  #filter(head: RequestHead, replace: Replace): Transform {
    const scan = this.#placeholders.scan();
    const pass = (stream: Transform, chunk: Buffer, isLast: boolean) => {
      const isAlone = scan.heldLength === 0;
      const charge = this.#budget(head);
      for (const part of scan.push(chunk.toString('latin1'), isLast)) {
        // Most chunks contain no placeholder and pass unchanged.
        if (isAlone && part.kind === 'clear' && part.text.length === chunk.length) stream.push(chunk);
        else stream.push(Buffer.from(this.#partOf(part, replace, charge), 'latin1'));
      }
    };
    const attempt = (work: () => void, done: (error?: Error) => void) => {
      try {
        work();
        done();
      } catch (error) {
        done(error as Error); // BlockedRequest, thrown by `replace`.
      }
    };
    return new Transform({
      transform(chunk: Buffer, _, done) {
        attempt(() => pass(this, chunk, false), done);
      },
      flush(done) {
        attempt(() => pass(this, Buffer.alloc(0), true), done);
      },
    });
  }
}

export function placeholdersOf({ entries }: SecretSettings): Placeholders {
  return new Placeholders(entries.map(({ placeholder }) => placeholder));
}

function isBlocking(action: SecretAction | undefined): action is Blocking {
  return action !== undefined && action !== 'leave' && action !== 'substitute';
}

function headerOf({ headers }: RequestHead, wanted: string): readonly string[] {
  return headers.flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []));
}

/** Decoded credentials of a `Basic` header; null for any other value. */
function decodedBasic(value: string): { readonly scheme: string; readonly text: string } | null {
  const match = /^(\s*basic\s+)([a-z0-9+/_=-]+)\s*$/i.exec(value);
  if (match === null) return null;
  return { scheme: match[1] ?? '', text: Buffer.from(match[2] ?? '', 'base64').toString('latin1') };
}

/** The value, escaped for the content type, so that it stays one value. */
function encodeFor(head: RequestHead, value: string): string {
  const type = headerOf(head, 'content-type')[0]?.toLowerCase() ?? '';
  if (/^[a-z]+\/(?:[^;\s]+\+)?json\b/.test(type)) return toBytes(JSON.stringify(value).slice(1, -1));
  if (type.startsWith('application/x-www-form-urlencoded')) return encodeURIComponent(value);
  return toBytes(value);
}
