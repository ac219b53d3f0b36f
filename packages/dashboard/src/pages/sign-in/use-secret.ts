import { useEffect, useState } from 'react';

/**
 * The secret behind `#` in the address, under this name. It stands there because browsers send that part to nobody; once read it is
 * taken out of the address, and of the history with it.
 */
export function useSecret(name: string): string | null {
  const [secret] = useState(() => new URLSearchParams(location.hash.slice(1)).get(name));
  useEffect(() => {
    if (secret !== null) history.replaceState(null, '', `${location.pathname}${location.search}`);
  }, [secret]);
  return secret;
}
