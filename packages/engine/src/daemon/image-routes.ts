import { PlatformError } from '@svc/contract/errors';
import type { ImageView, PullPolicy, RegistryAuth } from '@svc/contract/orchestrator';
import type { Image, ImageProgress } from '../images/images.ts';
import type { Kit } from '../sandboxes/kit.ts';
import type { WarmSandboxes } from '../sandboxes/warm-sandboxes.ts';
import { fields, optional, required } from './fields.ts';
import type { Routes } from './http-server.ts';
import { sendProgress } from './streams.ts';

export type BuildDemo = (
  request: { readonly names: readonly string[] | undefined; readonly force: boolean },
  onProgress: (progress: ImageProgress) => void,
  signal: AbortSignal,
) => Promise<readonly Image[]>;

/** Reads any path of the host, so only root may call it. */
export function operatorRoutes({ images }: Pick<Kit, 'images'>): Routes {
  return {
    'POST /images/import': async (call) => {
      const given = fields(await call.json());
      const { detectImportSource } = await import('../images/detect-import-source.ts');
      const source = await detectImportSource(required(given, 'path', 'string'), call.signal);
      const reference = required(given, 'reference', 'string');
      return await sendProgress(call, async (onProgress) =>
        toView(await images.import(source, reference, { onProgress, signal: call.signal })),
      );
    },
  };
}

interface ImageDaemon {
  readonly buildDemo: BuildDemo;
  readonly sandboxes: { readonly warm: Pick<WarmSandboxes, 'expect' | 'release'> };
}

export function imageRoutes(
  { images }: Pick<Kit, 'images'>,
  { buildDemo, sandboxes: { warm } }: ImageDaemon,
): Routes {
  return {
    'GET /images': async () => (await images.list()).map(toView),
    'GET /images/:reference': async (call) => toView(await find(images, call.params['reference'] ?? '')),
    'DELETE /images/:reference': async (call) => {
      const reference = call.params['reference'] ?? '';
      await giveBack(images, warm, reference);
      await images.remove(reference);
      return {};
    },
    'GET /scopes/:scope/images': async (call) => {
      const held = await images.held(call.params['scope'] ?? '');
      return {
        storedBytes: held.storedBytes,
        images: held.images.map(({ image, usedAt, isInUse }) => ({ ...toView(image), usedAt, isInUse })),
      };
    },
    'DELETE /scopes/:scope/images/:reference': async (call) => {
      const reference = call.params['reference'] ?? '';
      await giveBack(images, warm, reference);
      await images.release(reference, call.params['scope'] ?? '');
      return {};
    },
    'POST /images/prune': async () => {
      await warm.release();
      return await images.prune();
    },
    'POST /images/pull': async (call) => {
      const given = fields(await call.json());
      const reference = required(given, 'reference', 'string');
      const options = {
        pullPolicy: readPolicy(optional(given, 'policy', 'string')),
        auth: readAuth(given['auth']),
        scope: readScope(given, 'scope'),
        maxHeldBytes: readMaxHeldBytes(given),
      };
      return await sendProgress(call, async (onProgress) => {
        const image = await images.resolve(reference, { ...options, onProgress, signal: call.signal });
        warm.expect(image, reference, options.scope);
        return toView(image);
      });
    },
    'POST /images/build-demo': async (call) => {
      const given = fields(await call.json());
      const request = {
        names: readNames(given['names']),
        force: optional(given, 'force', 'boolean') ?? false,
      };
      return await sendProgress(call, async (onProgress) => {
        const built = await buildDemo(request, onProgress, call.signal);
        for (const image of built) warm.expect(image, image.references[0] ?? image.id, null);
        return built.map(toView);
      });
    },
  };
}

/** Warm sandboxes do not keep an image from being removed. */
async function giveBack(
  images: Kit['images'],
  warm: Pick<WarmSandboxes, 'release'>,
  reference: string,
): Promise<void> {
  const image = await images.get(reference);
  if (image !== undefined) await warm.release(image.id);
}

async function find(images: Kit['images'], reference: string): Promise<Image> {
  const image = await images.get(reference);
  if (image !== undefined) return image;
  const message = `there is no image ${reference} here; \`svc image pull ${reference}\` gets it`;
  throw new PlatformError('image_not_found', message, { details: { reference } });
}

function toView(image: Image): ImageView {
  return { ...image, layers: image.layers.length };
}

function readPolicy(text: string | undefined): PullPolicy {
  if (text === undefined) return 'always';
  if (text === 'if_missing' || text === 'always' || text === 'never') return text;
  throw new PlatformError('invalid_request', 'policy: must be if_missing, always or never');
}

export function readAuth(value: unknown): RegistryAuth | null {
  if (value === undefined || value === null) return null;
  const given = fields(value);
  return { username: required(given, 'username', 'string'), password: required(given, 'password', 'string') };
}

const MAX_SCOPE_LENGTH = 128;

export function readScope(given: Readonly<Record<string, unknown>>, field: string): string | null {
  const scope = optional(given, field, 'string') ?? null;
  if (scope === null || (scope.length > 0 && scope.length <= MAX_SCOPE_LENGTH)) return scope;
  throw new PlatformError('invalid_request', `${field}: must have 1 to ${MAX_SCOPE_LENGTH} characters`, {
    details: { field },
  });
}

export function readMaxHeldBytes(given: Readonly<Record<string, unknown>>): number | null {
  const bytes = given['maxHeldBytes'] ?? null;
  if (bytes === null || (typeof bytes === 'number' && bytes >= 0)) return bytes;
  throw new PlatformError('invalid_request', 'maxHeldBytes: must be a number of bytes, or null', {
    details: { field: 'maxHeldBytes' },
  });
}

function readNames(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value;
  throw new PlatformError('invalid_request', 'names: must be a list of image names');
}
