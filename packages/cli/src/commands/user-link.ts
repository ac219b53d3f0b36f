import { Command } from 'commander';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadLocal, readHere } from '../local-store.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('link')
    .description(
      'Makes a secret that signs a person in, once, and prints it: for the first time, or when a password is lost.\n' +
        'The user is made when there is none with this address. A second one makes the first void.\n' +
        'Without an address, while there is no account: a link with which the owner of the server makes one.',
    )
    .argument('[email]', 'whom it signs in')
    .option('--expire <duration>', 'number and unit: s, m, h, d', '1h')
    .option('--url <url>', 'address by which people reach the server, behind a proxy say (default: its own)')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['svc user link', 'for the first person, who becomes the owner'],
        ['svc user link ann@example.com', 'what POST /v1/session/link takes as token'],
        ['svc user link ann@example.com --expire 2d', 'when it may take her a while'],
        ['svc user link ann@example.com --url https://svc.example.com', 'where a proxy is in front'],
      ),
    )
    .action(create);
}

async function create(
  email: string | undefined,
  { expire, url: asked }: { readonly expire: string; readonly url?: string },
  command: Command,
): Promise<void> {
  const { place, isJson } = await readHere(command, 'links to sign in with');
  const { readStatus } = await import('@svc/server/admin');
  const own = async () => (await readStatus(place.dataFolder).catch(() => undefined))?.url;
  const url = asked === undefined ? await own() : originOf(asked);
  const { createLocalOwnerLink, createLocalSignInLink } = await loadLocal(place);
  if (email === undefined) {
    const { secret, expiresAt } = await createLocalOwnerLink(place, expire).catch(asUsage);
    if (isJson) return printJson({ email: null, token: secret, expires_at: expiresAt });
    print(url === undefined ? secret : `${url}/sign-up#owner=${secret}`);
    return report(
      `makes the account of the owner in a browser, once, until ${expiresAt} (data in ${place.dataFolder})`,
    );
  }
  const { secret, expiresAt } = await createLocalSignInLink(place, email, expire).catch(asUsage);
  if (isJson) return printJson({ email, token: secret, expires_at: expiresAt });
  print(secret);
  report(
    `signs ${email} in once, until ${expiresAt}: POST /v1/session/link {"token": …} (data in ${place.dataFolder})`,
  );
  if (url !== undefined) report(`  in a browser: ${url}/sign-in#link=${secret}`);
}

/** @throws UsageError */
function originOf(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return new URL(url).origin;
  throw new UsageError(`--url: '${url}' is no address\n  try: --url https://svc.example.com`);
}
