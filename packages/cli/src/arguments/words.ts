/** What is to be run, also when a `--` stands before it. */
export function commandWords(words: readonly string[]): readonly string[] {
  return words[0] === '--' ? words.slice(1) : words;
}
