/** 16 × 16, drawn as strokes in the colour of the text. */
const PATHS = {
  overview: 'M2.5 9.5h4v4h-4zM9.5 7h4v6.5h-4zM2.5 2.5h4V7h-4zM9.5 2.5h4v2h-4z',
  box: 'M2.5 5 8 2.2 13.5 5v6L8 13.8 2.5 11zM2.5 5 8 7.8 13.5 5M8 7.8v6',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3',
  play: 'M5 3.2v9.6L12.5 8z',
  stop: 'M4 4h8v8H4z',
  trash: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9',
  file: 'M4 2h5l3 3v9H4zM9 2v3h3',
  folder: 'M2 4h4l1.5 2H14v7H2z',
  upload: 'M8 11V3M5 6l3-3 3 3M3 13h10',
  download: 'M8 3v8M5 8l3 3 3-3M3 13.5h10',
  copy: 'M5.5 5.5h8v8h-8zM5.5 10.5h-3v-8h8v3',
  check: 'M3 8.5 6.5 12 13 4.5',
  cross: 'M4 4l8 8M12 4l-8 8',
  chevron: 'M6 4l4 4-4 4',
  down: 'M4 6l4 4 4-4',
  user: 'M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8ZM3 13.5c.6-2.6 2.6-4 5-4s4.4 1.4 5 4',
  users:
    'M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM1.5 13c.5-2.3 2.3-3.5 4.5-3.5s4 1.2 4.5 3.5M10.5 3.2a2.5 2.5 0 0 1 0 4.6M12 9.9c1.3.5 2.2 1.600 2.500 3.100',
  key: 'M6 12.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8.200 7.500 13.500 2.500M11 5l2 2',
  shield: 'M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z',
  disk: 'M2.500 4.500c0-1.100 2.500-2 5.500-2s5.500.9 5.500 2-2.500 2-5.500 2-5.500-.9-5.500-2ZM2.500 4.500v7c0 1.100 2.500 2 5.500 2s5.500-.9 5.500-2v-7M2.500 8c0 1.100 2.500 2 5.500 2s5.500-.9 5.500-2',
  chart: 'M2.500 13.500h11M4 11V8M7 11V4M10 11V6M13 11V3',
  gauge: 'M3 12a6 6 0 1 1 10 0M8 9l2.500-3',
  list: 'M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.01M2.500 8h.01M2.500 12h.01',
  gear: 'M8 10.200a2.200 2.200 0 1 0 0-4.400 2.200 2.200 0 0 0 0 4.400ZM8 1.800v2M8 12.200v2M1.800 8h2M12.200 8h2M3.600 3.600 5 5M11 11l1.400 1.400M12.400 3.600 11 5M5 11l-1.400 1.400',
  package: 'M2.500 4.500h11v9h-11zM2.500 4.500 4 2.500h8l1.500 2M6 7.500h4',
  terminal: 'M2 3h12v10H2zM4.500 6l2 2-2 2M8 10.500h3',
  sun: 'M8 10.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1',
  moon: 'M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500Z',
  menu: 'M2 4.500h12M2 8h12M2 11.500h12',
  book: 'M3 2.500h4c.6 0 1 .4 1 1v10c0-.6-.4-1-1-1H3zM13 2.500H9c-.6 0-1 .4-1 1v10c0-.6.4-1 1-1h4z',
  exit: 'M9 3H3v10h6M7 8h7M11.500 5.500 14 8l-2.500 2.500',
  pencil: 'M3 13l.5-2.500 7-7 2 2-7 7z',
  refresh: 'M13 8a5 5 0 1 1-1.500-3.600M13 2.500V5h-2.500',
} as const;
export type IconName = keyof typeof PATHS;

/** A picture beside words that say the same: it is hidden from who does not see it. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
