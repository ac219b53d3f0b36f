import type { TestPeople } from './people.ts';
import type { RestReply } from './test-server.ts';

/** A browser: keeps its cookie, and sends the headers that our own pages send. */
export class Browser {
  readonly #url: string;
  cookie = '';

  constructor({ server }: Pick<TestPeople, 'server'>) {
    this.#url = server.url;
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(`${this.#url}/v1${path}`, {
      method,
      headers: {
        'x-svc-page': '1',
        ...(this.cookie === '' ? {} : { cookie: this.cookie }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const set = response.headers.getSetCookie()[0] ?? '';
    if (set !== '') this.cookie = set.split(';')[0] ?? '';
    const { status, headers: answered } = response;
    return { status, body: (await response.json()) as RestReply['body'], set, headers: answered };
  }
}
