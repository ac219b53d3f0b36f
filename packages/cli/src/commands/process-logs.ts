import { Command } from 'commander';
import type { DetachedOutput, DetachedProcess } from '@svc/sdk';
import { parseOffsets, type Offsets } from '../arguments/offsets.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJsonLine } from '../terminal/print.ts';

const BEGINNING: Offsets = { stdoutOffset: 0, stderrOffset: 0 };

export function createCommand(): Command {
  return new Command('logs')
    .description(
      'Shows what a detached process wrote. With --follow until it ends, also through lost connections.',
    )
    .argument('<sandbox>', 'the sandbox')
    .argument('<process>', 'id or name')
    .option('-f, --follow', 'go on until the process ends')
    .option(
      '--offset <bytes>',
      'begin at this byte of stdout, and with N-M at byte M of stderr',
      parseOffsets,
    )
    .addHelpText(
      'after',
      examples(
        ['svc process logs web job', 'so far'],
        ['svc process logs -f web job', 'until it ends'],
        ['svc process logs --offset $(stat -c %s out) -f web job >> out', 'what is missing in a file'],
      ),
    )
    .action(showLogs);
}

async function showLogs(
  name: string,
  processId: string,
  { follow, offset = BEGINNING }: { readonly follow?: boolean; readonly offset?: Offsets },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { show } = await import('../sandbox/attach-process.ts');
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  const found = await sandbox.commands.connect(processId);
  const output = follow === true ? found.output(offset) : writtenSoFar(found, offset);
  if (!globals.isJson) return await show(output);
  for await (const event of output) printJsonLine(toJson(event));
}

/** The output so far. */
async function* writtenSoFar(found: DetachedProcess, offset: Offsets): AsyncGenerator<DetachedOutput, void> {
  const { status, stdout_bytes: stdout, stderr_bytes: stderr } = found.info;
  const missing = { stdout: stdout - offset.stdoutOffset, stderr: stderr - offset.stderrOffset };
  if (status === 'running' && missing.stdout <= 0 && missing.stderr <= 0) return;
  for await (const event of found.output(offset)) {
    yield event;
    const total = event.stream === 'stdout' ? stdout : stderr;
    missing[event.stream] = total - (event.kind === 'dropped' ? event.to : event.offset + event.data.length);
    if (status === 'running' && missing.stdout <= 0 && missing.stderr <= 0) return;
  }
}

function toJson(event: DetachedOutput): object {
  return event.kind === 'data' ? { ...event, data: Buffer.from(event.data).toString('base64') } : event;
}
