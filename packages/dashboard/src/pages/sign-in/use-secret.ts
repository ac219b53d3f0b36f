import { useEffect, useState } from 'react';

/**
 * The secret behind `#` in the address, under this name. It stands there because browsers send that part to nobody; once read it is
 * taken out of the address, and of the history with it. Who opens a link to the page that they are on changes that part alone.
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
