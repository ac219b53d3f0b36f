import type { Preview } from '@svc/sdk';
import { formatAge } from './amounts.ts';
import { print } from './print.ts';
import { formatTable } from './table.ts';

export function printPreviews(previews: readonly Preview[]): void {
  const now = Date.now();
  const rows = previews.map((preview) => [
    preview.id,
    String(preview.port),
    preview.url === '' ? '-' : preview.url,
    preview.access === 'public' ? 'none: public' : `…${preview.prefix}`,
    formatAge(preview.created_at, now),
    previewExpiry(preview),
  ]);
  print(formatTable(['ID', 'PORT', 'URL', 'TOKEN', 'AGE', 'EXPIRES'], rows));
}

export function previewExpiry({ expires_at: expiresAt }: Pick<Preview, 'expires_at'>): string {
  return expiresAt ?? 'never';
}
