import { useEffect, useState } from 'react';

/**
 * The secret of this name in the fragment of the address, which browsers never send to a server. Once read it is removed from the
 * address and the history. Opening a link to the current page changes only the fragment, so the hook listens for that too.
 */
export function useSecret(name: string): string | null {
  const [secret, setSecret] = useState(() => readSecret(name));
  useEffect(() => {
    if (secret !== null) history.replaceState(null, '', `${location.pathname}${location.search}`);
  }, [secret]);
  useEffect(() => {
    const look = (): void => setSecret((before) => readSecret(name) ?? before);
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, [name]);
  return secret;
}

function readSecret(name: string): string | null {
  return new URLSearchParams(location.hash.slice(1)).get(name);
}
