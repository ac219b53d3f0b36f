const START = '/process.Process/Start';
const HEAD_BYTES = 5;
const LAST = 2;
/** Of an end with exit code 0, which may be left out. */
const SUCCESS = /"end":\{(?!.*"exitCode":-?[1-9]).*"exited":true/;

/** A sandbox with the token for what is inside. */
export interface E2bSandbox {
  readonly sandboxID: string;
  readonly envdAccessToken: string;
}

/** What E2B's clients send for a sandbox and a command, without their own work: the part that is the server's. */
export class E2bWire {
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  async create(image: string): Promise<E2bSandbox> {
    return await this.#control('POST', '/v2/sandboxes', { templateID: image });
  }

  /** A sandbox of our own that runs. @param id a UUID */
  async connect(id: string): Promise<E2bSandbox> {
    return await this.#control('POST', `/v2/sandboxes/${id.replaceAll('-', '')}/connect`, {});
  }

  async kill({ sandboxID: id }: E2bSandbox): Promise<void> {
    await this.#control('DELETE', `/sandboxes/${id}`);
  }

  /** Resolves when the command has ended with 0 and all of its output is here. */
  async run({ sandboxID, envdAccessToken }: E2bSandbox, cmd: string): Promise<void> {
    const response = await fetch(`${this.#url}${START}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/connect+json',
        'e2b-sandbox-id': sandboxID,
        'e2b-sandbox-port': '49983',
        'x-access-token': envdAccessToken,
      },
      body: envelope({ process: { cmd, args: [] }, stdin: false }),
    });
    const answer = Buffer.from(await response.arrayBuffer());
    const end = answer.lastIndexOf(Buffer.from([LAST, 0, 0]));
    const isDone = response.ok && end > 0 && SUCCESS.test(answer.toString('latin1', 0, end));
    if (!isDone) throw new Error(`${cmd} failed: ${response.status} ${answer.toString()}`);
  }

  async #control<T>(method: string, path: string, body?: object): Promise<T> {
    const headers = { 'x-api-key': this.#key, 'content-type': 'application/json' };
    const request = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${this.#url}${path}`, { method, headers, ...request });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    // The contract of the wire says which answer has which fields.
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
}

function envelope(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}
