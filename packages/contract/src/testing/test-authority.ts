import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** The PEM files of one end of a connection with mutual TLS. */
export interface TestTlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** An authority in a temporary folder that signs certificates of engines and servers. */
export class TestAuthority implements AsyncDisposable {
  readonly folder: string;
  #made = 0;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<TestAuthority> {
    const authority = new TestAuthority(await mkdtemp(join(tmpdir(), 'svc-authority-')));
    const out = ['-keyout', authority.#path('ca.key'), '-out', authority.ca];
    await run('openssl', ['req', '-x509', ...KEY, '-subj', '/CN=test', '-days', '2', ...out]);
    return authority;
  }

  get ca(): string {
    return this.#path('ca.crt');
  }

  /** Of an engine of this machine, reached as 127.0.0.1 or by another address. */
  async engine(...addresses: readonly string[]): Promise<TestTlsFiles> {
    const names = ['IP:127.0.0.1', ...addresses.map((address) => `IP:${address}`)];
    return await this.sign(names.join(','));
  }

  async server(): Promise<TestTlsFiles> {
    return await this.sign('DNS:svc-server');
  }

  /** A certificate with these names and a key of its own. Negative days: it has expired. */
  async sign(names: string, days = 2): Promise<TestTlsFiles> {
    this.#made += 1;
    const [key, request, cert, fields] = ['key', 'csr', 'crt', 'ext'].map((ending) =>
      this.#path(`${this.#made}.${ending}`),
    ) as [string, string, string, string];
    await run('openssl', ['req', ...KEY, '-subj', '/CN=test', '-keyout', key, '-out', request]);
    await writeFile(fields, `subjectAltName=${names}\n`);
    const by = ['-CA', this.ca, '-CAkey', this.#path('ca.key'), '-days', String(days), '-extfile', fields];
    await run('openssl', ['x509', '-req', '-in', request, ...by, '-out', cert]);
    return { ca: this.ca, cert, key };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.folder, name);
  }
}
