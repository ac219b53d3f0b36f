import { createRoot } from 'react-dom/client';
import { App } from './app/App.tsx';
import { applyTheme } from './app/theme.ts';

applyTheme();
const root = document.querySelector('#root');
if (root === null) throw new Error('the page has no place for the dashboard');
createRoot(root).render(<App />);
