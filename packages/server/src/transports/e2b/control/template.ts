import { PlatformError } from '@svc/contract';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import { fromE2bId } from '../wire/e2b-address.ts';
import type { E2bCall } from '../wire/e2b-call.ts';

/** What a template stands for here. */
interface Template {
  readonly image: string;
  readonly memoryMib: number;
}

/** Names that E2B's clients use without a word of their users. */
const TEMPLATES: Readonly<Record<string, Template>> = {
  base: { image: 'base', memoryMib: 512 },
  'code-interpreter-v1': { image: 'code', memoryMib: 1024 },
};
const GATEWAY = 'mcp-gateway';

type Source = Pick<CreateSandboxRequest, 'source' | 'disk_snapshot_ref' | 'image' | 'resources' | 'runtime'>;

/** Of the user whom these images have. */
const HOME = '/home/user';

/** The part of a create that a template stands for: one of our names, a snapshot, or the reference of an image. */
export async function sourceOf(template: string, call: E2bCall): Promise<Source> {
  if (template === GATEWAY)
    throw new E2bRefusal(404, 'This server has no MCP gateway; run MCP servers inside of a sandbox');
  const known = TEMPLATES[template];
  if (known !== undefined)
    return {
      image: { type: 'oci', reference: known.image },
      resources: { memory_mib: known.memoryMib },
      runtime: { workdir: HOME },
    };
  const snapshot = await findSnapshot(template, call);
  return snapshot === undefined
    ? { image: { type: 'oci', reference: template } }
    : { source: 'disk_snapshot', disk_snapshot_ref: { type: 'managed', id: snapshot } };
}

/** Whether a create could use this name, as far as it is known without a look into registries. */
export async function isTemplate(template: string, call: E2bCall): Promise<boolean> {
  return TEMPLATES[template] !== undefined || (await findSnapshot(template, call)) !== undefined;
}

/** The id of a snapshot by the id that E2B's clients know, or by its name. */
export async function findSnapshot(text: string, call: E2bCall): Promise<string | undefined> {
  const id = fromE2bId(text);
  try {
    const found =
      id === undefined
        ? await call.rest('snapshots.getByName', { params: { name: text } })
        : await call.rest('snapshots.get', { params: { snapshot_id: id } });
    return found.id;
  } catch (error) {
    if (PlatformError.is(error, 'snapshot_not_found') || PlatformError.is(error, 'invalid_request'))
      return undefined;
    throw error;
  }
}
