import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_PICTURE_COST } from './picture-cost.ts';
import { drawableSvg } from './drawable-svg.ts';

const draw = (inner: string, attributes = '') =>
  drawableSvg(`<svg xmlns="http://www.w3.org/2000/svg" ${attributes}>${inner}</svg>`, MAX_PICTURE_COST);
const svgOf = (inner: string) => draw(inner)?.svg.replace(/^<svg[^>]*>|<\/svg>$/g, '');

test('a chart as libraries write it is drawn', () => {
  const chart = `<?xml version="1.0" encoding="utf-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<!-- made by a library --><svg xmlns:xlink="http://www.w3.org/1999/xlink" width="460pt" height="345pt" viewBox="0 0 460 345" xmlns="http://www.w3.org/2000/svg" version="1.1">
 <metadata><rdf:RDF xmlns:rdf="x"><cc:Work/></rdf:RDF></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style></defs>
 <g id="axes"><path d="M 0 0 L 9 9" style="fill: none; stroke-dasharray: 3.7,1.6; stroke: #1f77b4"/>
 <g clip-path="url(#p1)"><use xlink:href="#m1" x="57.6" y="307.5"/></g><text x="1">a &amp; b &lt; &#xfc;</text></g>
 <defs><path id="m1" d="M 0 0 L 0 3.5"/><clipPath id="p1"><rect width="9" height="9"/></clipPath></defs></svg>`;
  const drawn = drawableSvg(chart, MAX_PICTURE_COST);
  assert.ok(drawn !== null && drawn.cost < 50, String(drawn?.cost));
  assert.match(drawn.svg, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="460pt"/);
  for (const part of [
    '<style>* { stroke-linejoin: round; stroke-linecap: butt }</style>',
    'style="fill: none; stroke-dasharray: 3.7,1.6; stroke: #1f77b4"',
    '<g clip-path="url(#p1)"><use href="#m1" x="57.6" y="307.5"></use></g>',
    'a &amp; b &lt; ü</text>',
  ])
    assert.ok(drawn.svg.includes(part), part);
  assert.doesNotMatch(drawn.svg, /metadata|DOCTYPE|\?xml|made by/);
});

test('references cost what they refer to, as often as they do', () => {
  const levels = (from: number, to: number, attribute: string) =>
    Array.from({ length: to - from }, (_, index) => {
      const use =
        attribute === 'href'
          ? `<use href="#l${from + index}"/>`
          : `<path d="M0 0" ${attribute}="url(#l${from + index})"/>`;
      const name = attribute === 'href' ? 'g' : 'clipPath';
      return `<${name} id="l${from + index + 1}">${use.repeat(10)}</${name}>`;
    }).join('');
  const first = '<clipPath id="l0"><rect width="1" height="1"/></clipPath>';
  for (const attribute of ['href', 'clip-path']) {
    assert.notEqual(draw(first + levels(0, 3, attribute)), null);
    assert.equal(draw(first + levels(0, 9, attribute)), null, attribute);
  }
  assert.equal(draw('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>'), null);
  assert.equal(draw(`<path id="p" d="${'M0 0'.repeat(50_000)}"/>${'<use href="#p"/>'.repeat(100)}`), null);
  assert.equal(draw('<g>'.repeat(100) + '</g>'.repeat(100)), null);
  const chain = Array.from({ length: 100 }, (_, at) => `<g id="c${at}"><use href="#c${at + 1}"/></g>`);
  assert.equal(draw(chain.join('')), null);
});

test('what may cost anything is not drawn, and what is not known is left out', () => {
  for (const inner of [
    '<filter id="f"><feTurbulence numOctaves="9"/></filter>',
    '<mask id="m"/>',
    '<pattern id="p"/>',
    '<marker id="m"/>',
    '<foreignObject/>',
    '<rect><animate attributeName="x"/></rect>',
    '<style>@import url(x);</style>',
    '<style>a:has(b) { fill: red }</style>',
    '<rect width="1&unknown;"/>',
    '<rect width="1" width="2"/>',
    '<?xml-stylesheet href="#x"?>',
    '<rect>',
    '<path d="M0 0H1000000" stroke-dasharray="0.001"/>',
    `<path stroke-dasharray="1" d="M0 0${'L99999 0Z'.repeat(1000)}"/>`,
    '<g style="stroke-dasharray: 0.0001 0"><circle r="100%"/></g>',
  ])
    assert.equal(draw(inner, 'viewBox="0 0 100000 100000"'), null, inner);
  assert.equal(drawableSvg('<!DOCTYPE svg [<!ENTITY a "b">]><svg/>', MAX_PICTURE_COST), null);
  assert.equal(
    svgOf(
      '<script>x()</script><rect onload="x()" width="1" vector-effect="y" pathLength="9" filter="url(#f)"/>',
    ),
    '<rect width="1"></rect>',
  );
  assert.equal(
    svgOf('<g style="filter: blur(9px); fill: red; --a: var(--b); clip-path: path(x)"/>'),
    '<g style="fill: red"></g>',
  );
  assert.equal(
    svgOf('<image href="https://example.com/"/><use href="x.svg#a"/><use href="#%61"/>'),
    '<image></image><use></use><use></use>',
  );
  assert.equal(
    svgOf('<style>.a { fill: url(#a); stroke: red }</style>'),
    '<style>.a { stroke: red }</style>',
  );
});

test('pictures of bytes in it cost what they unpack to', () => {
  const png = (side: number) => {
    const bytes = Buffer.alloc(33);
    bytes.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
    bytes.writeUInt32BE(side, 16);
    bytes.writeUInt32BE(side, 20);
    return `<image href="data:image/png;base64,${bytes.toString('base64')}"/>`;
  };
  const small = draw(png(500));
  assert.ok(small !== null && small.cost > 250 && small.cost < 400, String(small?.cost));
  for (const inner of [
    png(20_000),
    png(2000).repeat(20),
    `<g id="a">${png(2000)}</g>${'<use href="#a"/>'.repeat(20)}`,
    '<image href="data:image/png;base64,AAAA"/>',
  ])
    assert.equal(draw(inner), null, inner.slice(0, 40));
});

test('no text takes long to read', () => {
  for (const [start, repeated, end] of [
    ['', '<!-- -->', 'x'],
    ['<svg>', '<!--', '</svg>'],
    ['<svg>', '<a/>', '</svg>'],
    ['<svg><a', ' ', '</svg>'],
    ['<svg><style>', 'a', '</style></svg>'],
    ['<svg><style>', 'a{', '</style></svg>'],
    ['<svg><style>', '/*', '</style></svg>'],
    ['<svg><style>', '/* * ', '</style></svg>'],
    ['<svg><g fill="', 'a-', '"/></svg>'],
    ['<svg><g style="fill: ', 'a-', '"/></svg>'],
    ['<svg><g stroke-dasharray="', '1px ', '!"/></svg>'],
    ['<svg><path d="M1 2z', ' ', '"/></svg>'],
  ] as const)
    drawableSvg(start + repeated.repeat(1_900_000 / repeated.length) + end, MAX_PICTURE_COST);
});
