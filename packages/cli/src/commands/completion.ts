import { Argument, Command } from 'commander';
import { COMPLETION_SCRIPTS, type Shell } from '../completion/scripts.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('completion')
    .description(
      'Prints what makes a shell complete commands, options and names: of sandboxes, images, volumes, processes.\n' +
        'It completes `svc`, which has to be on PATH; svc install sees to both.',
    )
    .addArgument(new Argument('<shell>', 'which one').choices(Object.keys(COMPLETION_SCRIPTS)))
    .addHelpText(
      'after',
      examples(
        ['source <(svc completion bash)', 'in ~/.bashrc'],
        ['source <(svc completion zsh)', 'in ~/.zshrc'],
        ['svc completion fish > ~/.config/fish/completions/svc.fish', 'once'],
      ),
    )
    .action((shell: Shell, _options: unknown, command: Command) => {
      const script = COMPLETION_SCRIPTS[shell];
      if (readGlobals(command).isJson) printJson({ shell, script });
      else print(script);
    });
}
