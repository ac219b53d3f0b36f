import { createPrivateKey, generateKeyPairSync, randomUUID, X509Certificate } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { writeAuthority, type Issuer } from './certificate.ts';

/** The issuer of certificates for intercepted hosts, in its serialized form: PEM. */
export interface AuthorityPem {
  readonly certificate: string;
  readonly key: string;
}

const YEARS = 10;
const YEAR_MS = 365 * 24 * 3_600_000;
/** An authority that expires sooner is replaced; running sandboxes keep trusting the one that they got. */
const LEAST_LEFT_MS = 90 * 24 * 3_600_000;
const CLOCKS_DIFFER_MS = 24 * 3_600_000;

/**
 * The authority of this installation, made at first use and kept in one file that only root can read. Concurrent callers
 * get the same one: the file appears atomically, and the first one wins.
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

/** Checks that key and certificate match and may sign. @throws Error that says what is wrong. */
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

/** Null when there is none. A damaged or expiring one is deleted, so that a new one is made. */
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
    // Truncated by a full disk, or edited: unusable.
  }
  await rm(path, { force: true });
  return null;
}
