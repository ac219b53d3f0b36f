import { useSyncExternalStore } from 'react';

const SYSTEM = '(prefers-color-scheme: dark)';

/** For what is drawn with colours of its own, and has to be drawn anew when the look changes: by the system, or by the theme. */
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
