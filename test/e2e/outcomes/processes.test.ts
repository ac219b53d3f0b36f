import { code } from './code.ts';
import { deafSandbox } from './deaf-sandbox.ts';
import { previews } from './previews.ts';
import { processes } from './processes.ts';
import { runOutcomes } from './run-outcomes.ts';

runOutcomes([processes, code, previews, deafSandbox], ['--preview-domain', 'preview.example']);
