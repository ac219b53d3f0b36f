import { useState } from 'react';

const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** The only value that is stored in the browser. */
const KEY = 'theme';

export function applyTheme(): void {
  const theme = readTheme();
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** The theme in force, and a function that takes the next one. */
export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState(readTheme);
  const next = (): void => {
    const following = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
    if (following === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, following);
    setTheme(following);
    applyTheme();
  };
  return [theme, next];
}

function readTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === kept) ?? 'system';
}
