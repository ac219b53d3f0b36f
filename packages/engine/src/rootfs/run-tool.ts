import { execFile } from 'node:child_process';

/** Longer than a check of a large, full disk takes. */
const TOOL_TIMEOUT_MS = 10 * 60_000;

/** Runs a tool of e2fsprogs to its end; resolves to its exit code. */
export async function runTool(
  tool: string,
  args: readonly string[],
): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    // SAFETY: the tools are named by our own code and the arguments are paths we made; no shell, no inherited environment.
    const options = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }, timeout: TOOL_TIMEOUT_MS };
    execFile(tool, args, options, (error, stdout, stderr) => {
      if (error === null) resolve({ code: 0, output: stdout + stderr });
      else if (typeof error.code === 'number') resolve({ code: error.code, output: stdout + stderr });
      else
        reject(new Error(`${tool} could not be run to its end; is e2fsprogs installed?`, { cause: error }));
    });
  });
}
