import { Command } from 'commander';
import { isServerMeant } from '../context/is-server-meant.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .description(
      'Lists images: those of your organization on the server of --context, of SVC_API_URL or of the context in use, else all of this machine.',
    )
    .addHelpText(
      'after',
      examples(
        ['svc image ls', 'all images of this machine'],
        ['svc --context lab image ls', 'those that your organization has on another server'],
        ['svc image ls -o json', 'for programs'],
      ),
    )
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  if (await isServerMeant(globals)) await listOnServer(globals);
  else await listHere(globals);
}

async function listHere({ dataFolder, isJson }: Globals): Promise<void> {
  const engine = await connectEngine(dataFolder);
  const images = await engine.images.listImages();
  if (isJson) return printJson(images);
  if (images.length === 0)
    return report(`no images in the data folder ${dataFolder}; make some with: svc image build-demo`);
  const now = Date.now();
  const rows = images.flatMap((image) =>
    namesOf(image).map((name) => [
      name,
      shortId(image),
      formatBytes(image.sizeBytes),
      String(image.layers),
      formatAge(image.createdAt, now),
    ]),
  );
  print(formatTable(['REFERENCE', 'ID', 'SIZE', 'LAYERS', 'AGE'], rows));
  report(`data in ${dataFolder}`);
}

async function listOnServer(globals: Globals): Promise<void> {
  const { Images } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const images = await Images.list({ client: await connectServer(globals) });
  if (globals.isJson) return printJson(images);
  if (images.length === 0) return report('no images; get one with: svc image pull REFERENCE');
  const now = Date.now();
  const rows = images.flatMap((image) =>
    namesOf(image).map((name) => [
      name,
      shortId(image),
      formatBytes(image.size_bytes),
      image.last_used_at === null ? '-' : formatAge(image.last_used_at, now),
      image.is_provided ? 'provided' : image.in_use ? 'in use' : '',
    ]),
  );
  print(formatTable(['REFERENCE', 'ID', 'SIZE', 'USED', ''], rows));
}

function namesOf({ references }: { readonly references: readonly string[] }): readonly string[] {
  return references.length > 0 ? references : ['-'];
}

function shortId({ id }: { readonly id: string }): string {
  return id.replace('sha256:', '').slice(0, 12);
}
