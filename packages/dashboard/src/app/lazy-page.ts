import { lazy, type ComponentType } from 'react';
import type { PathParams } from '../router/match-path.ts';

export interface PageProps {
  readonly params: PathParams;
}

/** A page whose code is loaded when it is opened. */
export function lazyPage<Name extends string>(
  load: () => Promise<{ readonly [Key in Name]: ComponentType<PageProps> }>,
  name: Name,
): ComponentType<PageProps> {
  return lazy(async (): Promise<{ default: ComponentType<PageProps> }> => ({
    default: (await load())[name],
  }));
}
