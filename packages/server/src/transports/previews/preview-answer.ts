import type { IncomingMessage, ServerResponse } from 'node:http';
import { ERROR_STATUS, type ErrorCode } from '@svc/contract';
import { escapeHtml } from '../docs/escape-html.ts';

/** An answer of the preview gateway itself: a page for browsers, JSON for other clients. */
export interface PreviewAnswer {
  readonly status: number;
  readonly code: ErrorCode;
  readonly title: string;
  /** What is the matter, and what to do. */
  readonly message: string;
}

const STYLE =
  'body{font:16px/1.6 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1.5rem;color-scheme:light dark}h1{font-size:1.4rem}p{white-space:pre-line}';

export const NEEDS_TOKEN: PreviewAnswer = {
  status: ERROR_STATUS.invalid_api_key,
  code: 'invalid_api_key',
  title: 'This preview needs a token',
  message:
    'Open it with a link that ends in ?svc_preview_token=…, or send the token in the header x-svc-preview-token.\nMembers of the organization make one with POST /v1/sandboxes/{id}/previews. A token that worked before may have been revoked, or have expired.',
};

export const FOREIGN_PAGE: PreviewAnswer = {
  status: ERROR_STATUS.forbidden,
  code: 'forbidden',
  title: 'Another page asked for this preview',
  message:
    'Only pages of this preview may use it with your cookie. Send the token in the header x-svc-preview-token.',
};

export const ELSEWHERE: PreviewAnswer = {
  status: ERROR_STATUS.forbidden,
  code: 'forbidden',
  title: 'Another page asked for this preview',
  message:
    'This server admits programs on its own machine and pages of the preview itself, but no pages of other sites.',
};

export function noSuchSandbox(name: string): PreviewAnswer {
  const message = `There is no sandbox '${name}'. svc ps -a lists those that there are.`;
  return {
    status: ERROR_STATUS.sandbox_not_found,
    code: 'sandbox_not_found',
    title: 'There is no such sandbox',
    message,
  };
}

export const TOO_MANY: PreviewAnswer = {
  status: ERROR_STATUS.rate_limited,
  code: 'rate_limited',
  title: 'Too many connections',
  message: 'As many connections to this sandbox are open as may be. Close some, and try again.',
};

export function notRunning(name: string, state: string): PreviewAnswer {
  const message = `Sandbox '${name}' is ${state}. Start it with: svc start ${name}`;
  return { status: 503, code: 'sandbox_not_running', title: 'The sandbox is not running', message };
}

export function notListening(name: string, port: number): PreviewAnswer {
  const message = `Nothing answers on port ${port} of sandbox '${name}'.\nStart the service in the sandbox, let it listen on 127.0.0.1 or 0.0.0.0 and port ${port}, and reload this page.`;
  return { status: 502, code: 'unavailable', title: 'The service is not listening', message };
}

export function brokeOff(port: number): PreviewAnswer {
  const message = `The service on port ${port} closed the connection, or answered something that is no HTTP.`;
  return { status: 502, code: 'unavailable', title: 'The service did not answer', message };
}

export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: PreviewAnswer): void {
  if (response.headersSent) return void response.destroy();
  const { status, code, title, message } = answer;
  const isPage = /\btext\/html\b/.test(request.headers.accept ?? '');
  const body = isPage
    ? `<!doctype html><meta charset="utf-8"><title>${escapeHtml(title)}</title><style>${STYLE}</style><h1>${escapeHtml(title)}</h1><p>${escapeHtml(message)}</p>`
    : JSON.stringify({ error: { code, message, details: null } });
  // What is left of the request is of no use; on a connection that stays, it would be read to its end.
  response.writeHead(status, {
    'content-type': isPage ? 'text/html; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(body),
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(request.method === 'HEAD' ? '' : body);
}
