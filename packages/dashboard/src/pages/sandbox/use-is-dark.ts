import { useSyncExternalStore } from 'react';

const SYSTEM = '(prefers-color-scheme: dark)';

/** Whether the dark look is active, by the system or the theme; for components that draw with their own colours. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, isDark);
}

function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? matchMedia(SYSTEM).matches : theme === 'dark';
}

function subscribe(listener: () => void): () => void {
  const system = matchMedia(SYSTEM);
  system.addEventListener('change', listener);
  const theme = new MutationObserver(listener);
  theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => {
    system.removeEventListener('change', listener);
    theme.disconnect();
  };
}
