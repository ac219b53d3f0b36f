import { readSources, type SourceFile } from './source-files.ts';

/** At most this many occurrences of riddle words. Lower the limits as words are removed, never raise them. */
export const MOST_RIDDLES: Readonly<Record<Area, number>> = { packages: 20, elsewhere: 20 };

type Area = 'packages' | 'elsewhere';

/** Subjects are named: the caller, the guest, the organization, the reconciler. */
const RIDDLES = [
  /\b(?:wh(?:o|at)ever|(?:no|some|any)body)\b/gim,
  /\bwhat rest(?:s)\b/gim,
  /\bof one['’]s own\b/gim,
  /\bgo(?:es)? by\b/gim,
  /\bby (?:itself|themselves)\b/gim,
  // As a subject: "who asks is told". After a noun, as in "a caller who asks", it is plain.
  /(?<=^|[.:;(|"'`*/-]\s*|\b(?:of|to|for|from|by|with|and|or|but|than|when|as|that|whether)\s)who (?:asks?|asked|comes?|came|goes|knows|looks|needs|takes|uses|waits?|wants?)\b/gim,
];

/** Words that this project made up for things with a usual name. Those of several words match in this order, all also in the plural. */
const USUAL: Readonly<Record<string, string>> = {
  asker: 'caller',
  'begin turn': 'lock',
  bell: 'notifier',
  'call share': 'fair semaphore',
  claimant: 'request',
  'code turn': 'lock',
  'connection share': 'connection limit',
  'cpu place': 'CPU allocator',
  dice: 'random generator',
  door: 'listener, upgrade handler',
  'end turn': 'unlock',
  'extend turn': 'extend the lock',
  'fair place': 'fair semaphore',
  'fair weight': 'CPU weight',
  'gathered lookup': 'batched lookup',
  hear: 'watch',
  'held channel': 'shared connection',
  'held event': 'event queue',
  keeper: 'reconciler',
  'kept pin': 'stored addresses',
  'kept record': 'stored record',
  'lent chunk': 'buffer pool',
  news: 'changes',
  'no room': 'no space, over quota',
  outlook: 'routes',
  'own share': 'CPU weight',
  owe: 'mark as pending',
  patience: 'timeouts',
  'pending question': 'query semaphore',
  'question rate': 'query rate limit',
  'require room': 'check the quota',
  scene: 'fixture',
  seat: 'process handle',
  'share room': 'distribute space',
  'shared room': 'granted space',
  standstill: 'progress timeout',
  stillborn: 'failed create',
  stranger: 'unauthenticated connection, unknown sandbox',
  surroundings: 'host networks',
  'take turn': 'lock',
  tell: 'report',
  telling: 'report',
  'thread budget': 'token bucket',
  'thread share': 'token bucket',
  told: 'reported, message',
  treatment: 'action',
  'turn interrupted': 'interrupted lock',
  turns: 'mutex',
  'units of other': 'foreign output',
  visitor: 'connection',
  wish: 'desired state',
};

const COINED = Object.entries(USUAL).map(([word, usual]) => ({
  pattern: new RegExp(`\\b${word}(?:s|es)?\\b`),
  usual,
}));
const DECLARED =
  /^\s*(?:export |async |abstract )*(?:function\*?|class|const|let|interface|type) ([A-Za-z_$][\w$]*)/gm;

/** The texts whose words are counted: sources, with their comments and strings, and documents. Generated references repeat them. */
export function readTexts(area: Area): readonly SourceFile[] {
  const types = '**/*.{ts,tsx,cjs,mjs,c,h,sh,py,css,html,md}';
  const patterns =
    area === 'packages'
      ? [`packages/${types}`]
      : ['*.md', `{adapters,bench,docs,examples,scripts,test}/${types}`];
  return readSources(...patterns).filter(({ path }) => !/^docs\/reference\/|^test\/words\.ts$/.test(path));
}

/** The number of the line of each occurrence of a riddle word. */
export function findRiddles(text: string): readonly number[] {
  const places = RIDDLES.flatMap((riddle) => [...text.matchAll(riddle)].map(({ index }) => index));
  return places.toSorted((a, b) => a - b).map((place) => text.slice(0, place).split('\n').length);
}

/** Names with made-up words that a file has itself or declares, each with the usual word. */
export function findCoinedNames({ path, text }: SourceFile): ReadonlyMap<string, string> {
  const file = path.slice(path.lastIndexOf('/') + 1).replace(/\..*$/, '');
  const declared = /\.tsx?$/.test(path) ? [...text.matchAll(DECLARED)].map(([, name = '']) => name) : [];
  return new Map(
    [file, ...declared].flatMap((name) => {
      const usual = usualNameOf(name);
      return usual === undefined ? [] : [[name, usual]];
    }),
  );
}

function usualNameOf(name: string): string | undefined {
  const words = wordsOf(name);
  if (findRiddles(words).length > 0) return 'a name that says who';
  return COINED.find(({ pattern }) => pattern.test(words))?.usual;
}

/** `KeyedTurns`, `keyed-turns` and `KEYED_TURNS` are `keyed turns`. */
function wordsOf(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_$-]+/g, ' ')
    .trim()
    .toLowerCase();
}
