import { PlatformError } from '@svc/contract/errors';
import { parseReference } from '@svc/contract/image-reference';
import { isDigest } from './digest.ts';

/** The error for an image with invalid content. */
export function refused(why: string, cause?: unknown): PlatformError {
  return new PlatformError('invalid_image', `The image was refused: ${why}`, { cause });
}

export function inUse(name: string, imageId: string): PlatformError {
  const message = `Image ${name} is used by a sandbox or a snapshot; remove that first`;
  return new PlatformError('image_in_use', message, { details: { imageId } });
}

/** The error for an image that the caller does not hold; the same whether others hold it or not. */
export function notYours(name: string): PlatformError {
  const message = `Image ${name} is not one of your own; those of the operator stay`;
  return new PlatformError('image_not_found', message, { details: { reference: name } });
}

export function missing(name: string): never {
  const isLocal = !isDigest(name) && parseReference(name).registry === null;
  const remedy = isLocal
    ? '`svc image build-demo` makes the images of this namespace'
    : `run \`svc image pull ${name}\``;
  throw new PlatformError(
    'image_not_found',
    `Image ${name} is not on this host; ${isDigest(name) ? 'pull it by its name' : remedy}`,
    {
      details: { reference: name },
    },
  );
}
