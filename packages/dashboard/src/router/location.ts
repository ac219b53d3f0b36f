import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();

/** Navigates to another page of this site. Only paths are accepted, so it never leads to another site. */
export function navigate(to: string, options: { readonly replace?: boolean } = {}): void {
  const target = new URL(to, location.origin);
  if (target.origin !== location.origin) return;
  const path = `${target.pathname}${target.search}${target.hash}`;
  if (options.replace === true) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  if (options.replace !== true) scrollTo(0, 0);
  for (const listener of listeners) listener();
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

/** The query parameters, and a function that changes one without a history entry. */
export function useSearch(): readonly [URLSearchParams, (name: string, value: string | null) => void] {
  const text = useSyncExternalStore(subscribe, () => location.search);
  const set = (name: string, value: string | null): void => {
    const search = new URLSearchParams(location.search);
    if (value === null || value === '') search.delete(name);
    else search.set(name, value);
    const rest = search.toString();
    navigate(`${location.pathname}${rest === '' ? '' : `?${rest}`}${location.hash}`, { replace: true });
  };
  return [new URLSearchParams(text), set];
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener('popstate', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('popstate', listener);
  };
}
