import { execFile } from 'node:child_process';
import { cp, mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { importChanged } from '../engine/image-fixture.ts';
import type { TestEngine } from '../engine/start-engine.ts';

const run = promisify(execFile);
const PYTHON = '/usr/bin/python3';
/** Without it a terminal shows no letters beyond ASCII. */
const LOCALE = '/usr/lib/locale/C.utf8';
/** What a prompt loads. */
const MODULES = 'readline, rlcompleter, traceback, site, encodings.utf_8, encodings.idna, sys';

/** An image with busybox and as much of this host's Python as its prompt needs: seconds sooner than one from packages. */
export async function importHostPython(engine: TestEngine, reference: string): Promise<void> {
  const program = await realpath(PYTHON);
  const list = `import ${MODULES}; [print(m.__file__) for m in sys.modules.values() if getattr(m, '__file__', None)]`;
  const modules = linesOf((await run(program, ['-c', list])).stdout);
  const { stdout } = await run('ldd', [program, ...modules.filter((path) => path.endsWith('.so'))]);
  const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
  await importChanged(engine, reference, async (folder) => {
    const copy = async (from: string, to = from) => {
      await mkdir(join(folder, dirname(to)), { recursive: true });
      await cp(from, join(folder, to), { recursive: true, dereference: true });
    };
    await copy(program, PYTHON);
    for (const path of new Set([...modules, ...libraries, LOCALE])) await copy(path);
  });
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.startsWith('/'));
}
