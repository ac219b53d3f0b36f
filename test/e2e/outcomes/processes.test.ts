import { code } from './code.ts';
import { deafSandbox } from './deaf-sandbox.ts';
import { fileLinks } from './file-links.ts';
import { files } from './files.ts';
import { lifecycle } from './lifecycle.ts';
import { previews } from './previews.ts';
import { processes } from './processes.ts';
import { runOutcomes } from './run-outcomes.ts';

runOutcomes(
  [processes, files, fileLinks, code, previews, lifecycle, deafSandbox],
  ['--preview-domain', 'preview.example'],
);
