/**
 * Short names, and the images that older clients ask for by default, stand for the demo images of this host
 * (`svc image build-demo`) when those exist.
 */
export const IMAGE_ALIASES: Readonly<Record<string, string>> = {
  base: 'svc/base',
  python: 'svc/python',
  node: 'svc/node',
  'microsandbox/python': 'svc/python',
  'microsandbox/node': 'svc/node',
};
