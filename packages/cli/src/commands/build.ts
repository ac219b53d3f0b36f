import { Command } from 'commander';
import { examples } from '../examples.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('build')
    .description(
      'svc runs images and does not build them: build one with docker, podman or buildah and import it, or begin with a demo image.',
    )
    .argument('[words...]', 'as docker build takes them')
    .allowUnknownOption()
    .addHelpText(
      'after',
      examples(
        ['docker build -t app . && docker save app -o app.tar', 'with the tool that you have, and then:'],
        ['svc image import app.tar app', 'from an archive or a folder'],
        ['svc image build-demo python', 'an image from Debian packages, without any registry'],
        ['svc snapshot create NAME app', 'or keep what you installed in a sandbox'],
      ),
    )
    .action(() => {
      throw new UsageError(
        'svc runs images and does not build them\n' +
          '  try: docker save app -o app.tar && svc image import app.tar app   # or: svc image build-demo python',
      );
    });
}
