interface Chart {
  readonly title: string;
  readonly bars: readonly { readonly name: string; readonly value: number }[];
}

const WIDTH = 720;
const LABEL = 130;
const BAR = 22;
const GAP = 8;
const OWN = '#2f6f4f';
const OTHER = '#9aa5b1';

/** Horizontal bars, one group per chart, each to its own scale. It has a background, so it is readable on light and dark pages. */
export function drawBars(charts: readonly Chart[]): string {
  const parts: string[] = [];
  let y = 16;
  for (const { title, bars } of charts) {
    y += 16;
    parts.push(`<text x="16" y="${y}" font-weight="bold">${escape(title)}</text>`);
    y += 12;
    const most = Math.max(...bars.map(({ value }) => value));
    for (const { name, value } of bars) {
      const width = Math.max(2, (value / most) * (WIDTH - LABEL - 110));
      const colour = name.startsWith('svc') ? OWN : OTHER;
      const middle = y + BAR / 2 + 5;
      parts.push(
        `<text x="16" y="${middle}">${escape(name)}</text>`,
        `<rect x="${LABEL}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${colour}"/>`,
        `<text x="${(LABEL + width + 8).toFixed(1)}" y="${middle}">${shown(value)}</text>`,
      );
      y += BAR + GAP;
    }
    y += 12;
  }
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="sans-serif" font-size="14">`;
  const ground = `<rect width="${WIDTH}" height="${y}" fill="#ffffff"/>`;
  return `${[head, ground, ...parts, '</svg>'].join('\n')}\n`;
}

function shown(value: number): string {
  return value >= 10 ? value.toFixed(0) : value.toFixed(1);
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
