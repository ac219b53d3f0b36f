import { createPrivateKey, generateKeyPairSync, randomUUID, X509Certificate } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { writeAuthority, type Issuer } from './certificate.ts';

/** Who signs for hosts that are intercepted, as it travels and rests: PEM. */
export interface AuthorityPem {
  readonly certificate: string;
  readonly key: string;
}

const YEARS = 10;
const YEAR_MS = 365 * 24 * 3_600_000;
/** One that would soon be over is replaced; sandboxes that run keep trusting the one they were given. */
const LEAST_LEFT_MS = 90 * 24 * 3_600_000;
const CLOCKS_DIFFER_MS = 24 * 3_600_000;

/**
 * The authority of this installation, made at first use and kept in one file that only root reads. Whoever calls at the same
 * moment gets the same one: a file appears whole or not at all, and the first stays.
 */
export async function openInstallationAuthority(path: string): Promise<AuthorityPem> {
  const kept = await readAuthority(path);
  if (kept !== null) return kept;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomUUID()}`;
  try {
    const made = makeAuthority();
    await using file = await open(draft, 'wx', 0o600);
    await file.writeFile(`${made.key}${made.certificate}`);
    await file.sync();
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  const winner = await readAuthority(path);
  if (winner === null) throw new Error(`${path} holds no usable authority; remove it and start again`);
  return winner;
}

/** Checks that the two belong together and may sign. @throws Error that says what is wrong. */
export function readIssuer({ certificate, key }: AuthorityPem): Issuer {
  const issuer = { key: createPrivateKey(key), certificate: new X509Certificate(certificate) };
  if (!issuer.certificate.ca) throw new Error('The certificate is not one of an authority (CA:TRUE)');
  if (!issuer.certificate.checkPrivateKey(issuer.key))
    throw new Error('The key does not belong to the certificate');
  return issuer;
}

export function makeAuthority(now = Date.now()): AuthorityPem {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const validity = { from: new Date(now - CLOCKS_DIFFER_MS), until: new Date(now + YEARS * YEAR_MS) };
  const certificate = writeAuthority(
    `svc sandbox CA ${new Date(now).toISOString().slice(0, 10)}`,
    privateKey,
    validity,
  );
  return { certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** Null when there is none. One that is damaged or nearly over is taken away, for a new one. */
async function readAuthority(path: string): Promise<AuthorityPem | null> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  });
  if (text === null) return null;
  const split = text.indexOf('-----BEGIN CERTIFICATE-----');
  const authority = { key: text.slice(0, Math.max(0, split)), certificate: text.slice(Math.max(0, split)) };
  try {
    const { certificate } = readIssuer(authority);
    if (certificate.validToDate.getTime() > Date.now() + LEAST_LEFT_MS) return authority;
  } catch {
    // Cut short by a full disk, or edited: of no use to anybody.
  }
  await rm(path, { force: true });
  return null;
}
